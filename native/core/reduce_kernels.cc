#include "core/reduce_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/simd/kernel_table.h"

namespace gradlink {
namespace simd {
namespace {

// Below this a call is not worth aligning: the head would cost more than loads that cross cache
// lines.
constexpr std::size_t kAlignFromBytes = 2048;

/// Elements until `pointer` is aligned to a cache line; 0 where it never is.
std::size_t headOf(const void* pointer, std::size_t elementBytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % elementBytes != 0) return 0;
  return (kLineBytes - address % kLineBytes) % kLineBytes / elementBytes;
}

/// Destinations in an order of their own, without allocation in the common case.
class PointerList {
 public:
  explicit PointerList(std::size_t capacity) {
    if (capacity > few_.size()) many_.resize(capacity);
  }
  PointerList(const PointerList&) = delete;
  PointerList& operator=(const PointerList&) = delete;

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
      // A source's lines are in the cache already; storing past it would only evict them first.
      bool streams = i < wanted.first && std::find(src.begin(), src.end(), pointer) == src.end() &&
                     reinterpret_cast<std::uintptr_t>(pointer) % elementBytes == 0;
      // One head serves all: destinations aligned otherwise than the first are stored as usual.
      if (streams && back == dst.size()) head = headOf(pointer, elementBytes);
      streams = streams && headOf(pointer, elementBytes) == head;
      list.data()[streams ? --back : front++] = pointer;
    }
    streamed = dst.size() - back;
  }

  PointerList list;
  std::size_t streamed = 0;
  /// Elements before the streaming destinations are aligned.
  std::size_t head = 0;
};

}  // namespace

void reduceMany(const KernelTable& level, std::span<void* const> dst,
                std::span<const void* const> src, std::size_t count, DType dtype, ReduceOp op,
                Streaming streaming) {
  if (count == 0 || dst.empty() || src.empty()) return;
  const std::size_t elementBytes = sizeOf(dtype);
  if (src.size() == 1) return copyMany(level, dst, src[0], count * elementBytes, streaming);
  const Reduce kernel = level.reduce[static_cast<int>(dtype)][static_cast<int>(op)];
  ReduceArguments arguments{dst.data(), dst.size(), 0,     src.data(),
                            src.size(), 0,          count, src.size()};
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

void divideBy(const KernelTable& level, void* data, std::size_t count, DType dtype,
              std::size_t divisor) {
  if (count == 0 || divisor == 1) return;
  void* const dst[] = {data};
  const void* const src[] = {data};
  level.reduce[static_cast<int>(dtype)][static_cast<int>(ReduceOp::avg)](
      {dst, 1, 0, src, 1, 0, count, divisor});
}

void weightedSum(const KernelTable& level, void* dst, std::span<const void* const> src,
                 std::span<const double> weights, std::size_t count, DType dtype) {
  if (count == 0) return;
  if (src.empty()) {
    std::memset(dst, 0, count * sizeOf(dtype));
    return;
  }
  level.weighted[static_cast<int>(dtype)]({dst, src.data(), weights.data(), src.size(), count});
}

void copyMany(const KernelTable& level, std::span<void* const> dst, const void* src,
              std::size_t bytes, Streaming streaming) {
  if (bytes < kAlignFromBytes || (!streaming && dst.size() == 1)) {
    for (void* const to : dst) {
      if (to != src && bytes != 0) std::memcpy(to, src, bytes);
    }
    return;
  }
  PointerList others(dst.size());
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

void divideBy(void* data, std::size_t count, DType dtype, std::size_t divisor) {
  simd::divideBy(simd::currentLevel(), data, count, dtype, divisor);
}

void weightedSum(void* dst, std::span<const void* const> src, std::span<const double> weights,
                 std::size_t count, DType dtype) {
  simd::weightedSum(simd::currentLevel(), dst, src, weights, count, dtype);
}

void copyMany(std::span<void* const> dst, const void* src, std::size_t bytes, Streaming streaming) {
  simd::copyMany(simd::currentLevel(), dst, src, bytes, streaming);
}

const char* simdLevel() { return simd::currentLevel().name; }

}  // namespace gradlink
