#include "core/kernels/reduce_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/integer_weights.h"
#include "core/kernels/simd/kernel_table.h"

namespace gradlink {
namespace simd {
namespace {

// Below this, aligning costs more than loads that cross cache lines.
constexpr std::size_t kAlignFromBytes = 2048;

/// Elements until `pointer` is aligned to a cache line; 0 if it never is.
std::size_t headOf(const void* pointer, std::size_t elementBytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % elementBytes != 0) return 0;
  return (kLineBytes - address % kLineBytes) % kLineBytes / elementBytes;
}

/// A reordered list of destinations, usually without allocation.
class Destinations {
 public:
  explicit Destinations(std::size_t capacity) {
    if (capacity > few_.size()) many_.resize(capacity);
  }
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  void** data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<void*, 32> few_;
  std::vector<void*> many_;
};

/// Orders the destinations of a streaming call: those that may bypass the caches last.
struct StreamOrder {
  StreamOrder(std::span<void* const> dst, std::span<const void* const> src,
              std::size_t elementBytes, Streaming wanted)
      : list(dst.size()) {
    std::size_t front = 0;
    std::size_t back = dst.size();
    for (std::size_t i = 0; i < dst.size(); ++i) {
      void* const pointer = dst[i];
      // A source's lines are in the cache already; a streaming store would evict them first.
      bool streams = i < wanted.first && std::find(src.begin(), src.end(), pointer) == src.end() &&
                     reinterpret_cast<std::uintptr_t>(pointer) % elementBytes == 0;
      // All share one head: destinations with another alignment than the first are stored normally.
      if (streams && back == dst.size()) head = headOf(pointer, elementBytes);
      streams = streams && headOf(pointer, elementBytes) == head;
      list.data()[streams ? --back : front++] = pointer;
    }
    streamed = dst.size() - back;
  }

  Destinations list;
  std::size_t streamed = 0;
  /// Elements before the streaming destinations are aligned.
  std::size_t head = 0;
};

/// The order in which a call's sums are stored, and the sources to save because a store overwrites
/// them before their last use. Sums that no other one reads come first: a chain of neighbors in
/// place saves nothing, a ring one source.
struct MixPlan {
  MixPlan(std::span<const WeightedOutput> given, std::span<const WeightedTerm> givenTerms) {
    std::vector<std::size_t> first;
    std::size_t at = 0;
    for (const WeightedOutput& output : given) {
      first.push_back(at);
      at += output.terms;
    }
    std::vector<bool> done(given.size());
    const auto reads = [&](std::size_t output, const void* place) {
      const auto own = givenTerms.subspan(first[output], given[output].terms);
      return std::any_of(own.begin(), own.end(),
                         [&](const WeightedTerm& term) { return term.src == place; });
    };
    const auto isRead = [&](std::size_t by) {
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (!done[i] && i != by && reads(i, given[by].dst)) return true;
      }
      return false;
    };
    std::vector<std::size_t> order;
    std::vector<const void*> held;
    while (order.size() < given.size()) {
      std::size_t next = given.size();
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (done[i]) continue;
        const bool read = isRead(i);
        if (next == given.size() || !read) next = i;
        if (!read) break;
      }
      if (isRead(next)) held.push_back(given[next].dst);
      done[next] = true;
      order.push_back(next);
    }
    memory.resize(held.size());
    for (std::size_t i = 0; i < held.size(); ++i) holds.push_back({held[i], &memory[i]});
    for (const std::size_t i : order) {
      outputs.push_back(given[i]);
      for (const WeightedTerm& term : givenTerms.subspan(first[i], given[i].terms)) {
        const auto found = std::find(held.begin(), held.end(), term.src);
        terms.push_back({term.src,
                         found == held.end()
                             ? nullptr
                             : &memory[static_cast<std::size_t>(found - held.begin())],
                         term.weight});
      }
    }
  }

  struct alignas(kLineBytes) Held {
    std::byte bytes[kMixBytes];
  };
  std::vector<WeightedOutput> outputs;
  std::vector<MixTerm> terms;
  std::vector<MixHold> holds;
  std::vector<Held> memory;
};

}  // namespace

void reduceMany(const KernelTable& level, std::span<void* const> dst,
                std::span<const void* const> src, std::size_t count, DType dtype, ReduceOp op,
                Streaming streaming, std::size_t divisor) {
  if (count == 0 || dst.empty() || src.empty()) return;
  const std::size_t elementBytes = sizeOf(dtype);
  if (divisor == 0) divisor = src.size();
  if (src.size() == 1 && divisor == 1) {
    return copyMany(level, dst, src[0], count * elementBytes, streaming);
  }
  const Reduce kernel = level.reduce[static_cast<int>(dtype)][static_cast<int>(op)];
  ReduceArguments arguments{dst.data(), dst.size(), 0, src.data(), src.size(), 0, count, divisor};
  if (count * elementBytes < kAlignFromBytes) return kernel(arguments);
  const auto runFrom = [&](std::size_t head, std::size_t streamed) {
    if (head != 0) {
      arguments.end = head;
      kernel(arguments);
    }
    arguments.begin = head;
    arguments.end = count;
    arguments.streamed = streamed;
    kernel(arguments);
  };
  if (!streaming) return runFrom(headOf(dst[0], elementBytes), 0);
  StreamOrder order(dst, src, elementBytes, streaming);
  arguments.dst = order.list.data();
  runFrom(order.head, order.streamed);
}

void widen(const KernelTable& level, const void* halves, float* to, std::size_t count,
           DType halfType) {
  const bool brain = halfType == DType::bfloat16;
  (brain ? level.widenBrain : level.widenHalf)(static_cast<const std::uint16_t*>(halves), to,
                                               count);
}

void narrow(const KernelTable& level, const float* from, void* halves, std::size_t count,
            DType halfType, std::size_t divisor) {
  const bool brain = halfType == DType::bfloat16;
  (brain ? level.narrowBrain : level.narrowHalf)(from, static_cast<std::uint16_t*>(halves), count,
                                                 divisor);
}

void weightedSum(const KernelTable& level, void* dst, std::span<const void* const> src,
                 std::span<const double> weights, std::size_t count, DType dtype,
                 std::size_t divisor) {
  if (count == 0) return;
  if (src.empty()) {
    std::memset(dst, 0, count * sizeOf(dtype));
    return;
  }
  if (!isFloat(dtype) || divisor != 1) {
    std::vector<WeightedTerm> terms;
    for (std::size_t s = 0; s < src.size(); ++s) terms.push_back({src[s], weights[s]});
    const WeightedOutput output{dst, terms.size(), divisor};
    return weightedSums(level, {&output, 1}, terms, count, dtype, false);
  }
  level.weighted[static_cast<int>(dtype)]({dst, src.data(), weights.data(), src.size(), count});
}

void weightedSums(const KernelTable& level, std::span<const WeightedOutput> outputs,
                  std::span<const WeightedTerm> terms, std::size_t count, DType dtype,
                  bool streaming) {
  if (count == 0 || outputs.empty()) return;
  if (!isFloat(dtype)) return weightedIntegers(outputs, terms, count, dtype);
  const MixPlan plan(outputs, terms);
  MixArguments arguments{plan.outputs.data(), plan.outputs.size(), false, plan.terms.data(),
                         plan.holds.data(),   plan.holds.size(),   0,     count};
  const Mix kernel = level.mix[static_cast<int>(dtype)];
  const std::size_t elementBytes = sizeOf(dtype);
  if (count * elementBytes < kAlignFromBytes) return kernel(arguments);
  const std::size_t head = headOf(outputs[0].dst, elementBytes);
  const auto streams = [&](const WeightedOutput& output) {
    return headOf(output.dst, elementBytes) == head &&
           reinterpret_cast<std::uintptr_t>(output.dst) % elementBytes == 0 &&
           std::none_of(terms.begin(), terms.end(),
                        [&](const WeightedTerm& term) { return term.src == output.dst; });
  };
  if (head != 0) {
    arguments.end = head;
    kernel(arguments);
  }
  arguments.begin = head;
  arguments.end = count;
  arguments.streamed = streaming && std::all_of(outputs.begin(), outputs.end(), streams);
  kernel(arguments);
}

void copyMany(const KernelTable& level, std::span<void* const> dst, const void* src,
              std::size_t bytes, Streaming streaming) {
  if (bytes < kAlignFromBytes || (!streaming && dst.size() == 1)) {
    for (void* const to : dst) {
      if (to != src) copyBytes(to, src, bytes);
    }
    return;
  }
  Destinations others(dst.size());
  void** const end =
      std::copy_if(dst.begin(), dst.end(), others.data(), [&](void* to) { return to != src; });
  const std::span<void* const> targets(others.data(), end);
  if (targets.empty()) return;
  if (!streaming) return level.copy({targets.data(), targets.size(), 0, src, 0, bytes});
  StreamOrder order(targets, {}, 1, streaming);
  if (order.head != 0) level.copy({order.list.data(), targets.size(), 0, src, 0, order.head});
  level.copy({order.list.data(), targets.size(), order.streamed, src, order.head, bytes});
}

}  // namespace simd

void reduceMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                DType dtype, ReduceOp op, Streaming streaming) {
  simd::reduceMany(simd::currentLevel(), dst, src, count, dtype, op, streaming);
}

void averageMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                 DType dtype, std::size_t divisor) {
  simd::reduceMany(simd::currentLevel(), dst, src, count, dtype, ReduceOp::avg, {}, divisor);
}

void divideBy(void* data, std::size_t count, DType dtype, std::size_t divisor) {
  void* const dst[] = {data};
  const void* const src[] = {data};
  averageMany(dst, src, count, dtype, divisor);
}

void widen(const void* halves, float* to, std::size_t count, DType halfType) {
  simd::widen(simd::currentLevel(), halves, to, count, halfType);
}

void narrow(const float* from, void* halves, std::size_t count, DType halfType,
            std::size_t divisor) {
  simd::narrow(simd::currentLevel(), from, halves, count, halfType, divisor);
}

void weightedSum(void* dst, std::span<const void* const> src, std::span<const double> weights,
                 std::size_t count, DType dtype, std::size_t divisor) {
  simd::weightedSum(simd::currentLevel(), dst, src, weights, count, dtype, divisor);
}

void weightedSums(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                  std::size_t count, DType dtype, bool streaming) {
  simd::weightedSums(simd::currentLevel(), outputs, terms, count, dtype, streaming);
}

void copyMany(std::span<void* const> dst, const void* src, std::size_t bytes, Streaming streaming) {
  simd::copyMany(simd::currentLevel(), dst, src, bytes, streaming);
}

const char* simdLevel() { return simd::currentLevel().name; }

bool hasSimdLevel(std::string_view name) {
  const simd::KernelTable* levels[3];
  const int count = simd::availableLevels(levels);
  return std::any_of(levels, levels + count,
                     [name](const simd::KernelTable* level) { return level->name == name; });
}

}  // namespace gradlink
