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

template <class P>
kernels::Pattern<P> patternOf(const Pattern& pattern) {
  return {pattern.op, static_cast<std::uint64_t>(std::max(1, pattern.size)), pattern.seed};
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
template <class P, class Expected>
std::size_t countWrong(const void* got, std::size_t count, Expected expected) {
  std::atomic<std::size_t> wrong{0};
  inParts(count, [&](std::size_t begin, std::size_t end) {
    std::size_t mine = 0;
    const auto* bytes = static_cast<const std::uint8_t*>(got);
    for (std::size_t i = begin; i < end; ++i) {
      const typename P::Memory value = P::encode(expected(i));
      if (std::memcmp(&value, bytes + i * sizeof value, sizeof value) != 0) ++mine;
    }
    wrong += mine;
  });
  return wrong;
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
  kernels::withPattern(pattern.dtype, [&](auto type) {
    using P = decltype(type);
    const auto values = patternOf<P>(pattern);
    inParts(count, [&](std::size_t begin, std::size_t end) {
      auto* bytes = static_cast<std::uint8_t*>(to);
      for (std::size_t i = begin; i < end; ++i) {
        const typename P::Memory value =
            P::encode(values.input(first + i, static_cast<std::uint64_t>(rank)));
        std::memcpy(bytes + i * sizeof value, &value, sizeof value);
      }
    });
  });
}

std::size_t countWrongInput(const void* got, std::size_t first, std::size_t count,
                            const Pattern& pattern, int rank) {
  return kernels::withPattern(pattern.dtype, [&](auto type) {
    using P = decltype(type);
    const auto values = patternOf<P>(pattern);
    return countWrong<P>(got, count, [&](std::size_t i) {
      return values.input(first + i, static_cast<std::uint64_t>(rank));
    });
  });
}

std::size_t countWrongReduction(const void* got, std::size_t first, std::size_t count,
                                const Pattern& pattern, int ranks) {
  if (ranks == 0) {
    return countOthers(got, count, sizeOf(pattern.dtype), identityBits(pattern.dtype, pattern.op));
  }
  return kernels::withPattern(pattern.dtype, [&](auto type) {
    using P = decltype(type);
    const auto values = patternOf<P>(pattern);
    return countWrong<P>(got, count, [&](std::size_t i) {
      return values.reduction(first + i, static_cast<std::uint64_t>(ranks));
    });
  });
}

std::uint64_t inputBits(std::size_t index, const Pattern& pattern, int rank) {
  return kernels::withPattern(pattern.dtype, [&](auto type) -> std::uint64_t {
    using P = decltype(type);
    return P::encode(patternOf<P>(pattern).input(index, static_cast<std::uint64_t>(rank)));
  });
}

std::uint64_t reductionBits(std::size_t index, const Pattern& pattern, int ranks) {
  if (ranks == 0) return identityBits(pattern.dtype, pattern.op);
  return kernels::withPattern(pattern.dtype, [&](auto type) -> std::uint64_t {
    using P = decltype(type);
    return P::encode(patternOf<P>(pattern).reduction(index, static_cast<std::uint64_t>(ranks)));
  });
}

}  // namespace gradlink::measure
