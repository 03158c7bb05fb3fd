#include "measure/pattern.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/kernels/identity.h"
#include "core/kernels/pattern_formula.h"
#include "core/thread_pool.h"

namespace gradlink::measure {
namespace {

// Elements of a thread's part: enough work for a wake-up.
constexpr std::size_t kPartElements = 1 << 16;

/// Calls `call` with the values of the pattern.
template <class Call>
auto withPattern(const Pattern& pattern, Call call) {
  const kernels::PatternType type = kernels::patternType(pattern.dtype);
  const auto size = static_cast<std::uint64_t>(std::max(1, pattern.size));
  if (type.isFloat) return call(kernels::Pattern<double>(type, pattern.op, size, pattern.seed));
  return call(kernels::Pattern<std::uint64_t>(type, pattern.op, size, pattern.seed));
}

/// Calls `call` with a word of an element's size.
template <class Call>
auto withWord(DType dtype, Call call) {
  switch (sizeOf(dtype)) {
    case 1:
      return call(std::uint8_t{});
    case 2:
      return call(std::uint16_t{});
    case 4:
      return call(std::uint32_t{});
    default:
      return call(std::uint64_t{});
  }
}

template <class Body>
void inParts(std::size_t count, Body body) {
  const std::size_t parts = (count + kPartElements - 1) / kPartElements;
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const std::size_t begin = part * kPartElements;
    body(begin, std::min(count, begin + kPartElements));
  });
}

/// Elements of `got` whose bits differ from expected(i)'s.
template <class Expected>
std::size_t countWrong(const void* got, std::size_t count, DType dtype, Expected expected) {
  std::atomic<std::size_t> wrong{0};
  withWord(dtype, [&](auto word) {
    using Word = decltype(word);
    inParts(count, [&](std::size_t begin, std::size_t end) {
      std::size_t mine = 0;
      const auto* bytes = static_cast<const std::uint8_t*>(got);
      for (std::size_t i = begin; i < end; ++i) {
        const auto value = static_cast<Word>(expected(i));
        if (std::memcmp(&value, bytes + i * sizeof value, sizeof value) != 0) ++mine;
      }
      wrong += mine;
    });
  });
  return wrong;
}

std::uint64_t lowBytes(std::uint64_t bits, const Pattern& pattern) {
  const std::size_t unused = 64 - 8 * sizeOf(pattern.dtype);
  return bits << unused >> unused;
}

/// Elements of `got`, `size` bytes each, whose bits differ.
std::size_t countOthers(const void* got, std::size_t count, std::size_t size, std::uint64_t bits) {
  const auto* bytes = static_cast<const std::uint8_t*>(got);
  std::size_t others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&bits, bytes + i * size, size) != 0) ++others;
  }
  return others;
}

}  // namespace

void fillPattern(void* to, std::size_t first, std::size_t count, const Pattern& pattern, int rank) {
  withPattern(pattern, [&](const auto values) {
    withWord(pattern.dtype, [&](auto word) {
      using Word = decltype(word);
      inParts(count, [&](std::size_t begin, std::size_t end) {
        auto* bytes = static_cast<std::uint8_t*>(to);
        for (std::size_t i = begin; i < end; ++i) {
          const auto value = static_cast<Word>(
              values.encode(values.input(first + i, static_cast<std::uint64_t>(rank))));
          std::memcpy(bytes + i * sizeof value, &value, sizeof value);
        }
      });
    });
  });
}

std::size_t countWrongInput(const void* got, std::size_t first, std::size_t count,
                            const Pattern& pattern, int rank) {
  return withPattern(pattern, [&](const auto values) {
    return countWrong(got, count, pattern.dtype, [&](std::size_t i) {
      return values.encode(values.input(first + i, static_cast<std::uint64_t>(rank)));
    });
  });
}

std::size_t countWrongReduction(const void* got, std::size_t first, std::size_t count,
                                const Pattern& pattern, int ranks) {
  if (ranks == 0) {
    return countOthers(got, count, sizeOf(pattern.dtype), identityBits(pattern.dtype, pattern.op));
  }
  return withPattern(pattern, [&](const auto values) {
    return countWrong(got, count, pattern.dtype, [&](std::size_t i) {
      return values.encode(values.reduction(first + i, static_cast<std::uint64_t>(ranks)));
    });
  });
}

std::uint64_t inputBits(std::size_t index, const Pattern& pattern, int rank) {
  return withPattern(pattern, [&](const auto values) {
    return lowBytes(values.encode(values.input(index, static_cast<std::uint64_t>(rank))), pattern);
  });
}

std::uint64_t reductionBits(std::size_t index, const Pattern& pattern, int ranks) {
  if (ranks == 0) return identityBits(pattern.dtype, pattern.op);
  return withPattern(pattern, [&](const auto values) {
    return lowBytes(values.encode(values.reduction(index, static_cast<std::uint64_t>(ranks))),
                    pattern);
  });
}

}  // namespace gradlink::measure
