// Sums of any number of arrays, to any number of arrays. One tile a block: the hardware's
// scheduling of blocks balances better than our own loops.
#pragma once

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// `vectors` vectors, kThreads apart, from `at` on. All loads precede the first store, so a target
/// may be a source; the loads of one source are in flight together.
template <class E, unsigned vectors>
GRADLINK_DEVICE void sumVectors(const SumData& task, std::uint64_t at) {
  typename E::Wide sums[vectors][E::kWides];
  const Vector* from = static_cast<const Vector*>(task.pointers[0]) + at;
  Vector loaded[vectors];
  GRADLINK_UNROLL
  for (unsigned v = 0; v < vectors; ++v) loaded[v] = from[v * kThreads];
  if (task.sources > 1) {
    GRADLINK_UNROLL
    for (unsigned v = 0; v < vectors; ++v) E::unpack(loaded[v], sums[v]);
    GRADLINK_KEEP_ROLLED
    for (std::uint32_t s = 1; s < task.sources; ++s) {
      from = static_cast<const Vector*>(task.pointers[s]) + at;
      GRADLINK_UNROLL
      for (unsigned v = 0; v < vectors; ++v) loaded[v] = from[v * kThreads];
      GRADLINK_UNROLL
      for (unsigned v = 0; v < vectors; ++v) {
        typename E::Wide more[E::kWides];
        E::unpack(loaded[v], more);
        GRADLINK_UNROLL
        for (unsigned i = 0; i < E::kWides; ++i) sums[v][i] = E::add(sums[v][i], more[i]);
      }
    }
    GRADLINK_UNROLL
    for (unsigned v = 0; v < vectors; ++v) loaded[v] = E::pack(sums[v]);
  }
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t t = 0; t < task.targets; ++t) {
    Vector* to = static_cast<Vector*>(task.pointers[task.sources + t]) + at;
    GRADLINK_UNROLL
    for (unsigned v = 0; v < vectors; ++v) to[v * kThreads] = loaded[v];
  }
}

template <class E>
GRADLINK_DEVICE void sumElement(const SumData& task, std::uint64_t at) {
  using Memory = typename E::Memory;
  Memory result = static_cast<const Memory*>(task.pointers[0])[at];
  if (task.sources > 1) {
    typename E::Wide sum = E::widen(result);
    GRADLINK_KEEP_ROLLED
    for (std::uint32_t s = 1; s < task.sources; ++s) {
      sum = E::add(sum, E::widen(static_cast<const Memory*>(task.pointers[s])[at]));
    }
    result = E::narrow(sum);
  }
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t t = 0; t < task.targets; ++t) {
    static_cast<Memory*>(task.pointers[task.sources + t])[at] = result;
  }
}

template <class E>
GRADLINK_DEVICE void sumTile(const SumData* tasks, std::uint32_t count) {
  constexpr std::uint64_t kPerVector = sizeof(Vector) / sizeof(typename E::Memory);
  constexpr std::uint64_t kTileVectors = kSumTileBytes / sizeof(Vector);
  const SumData task = tasks[taskAt(tasks, count, &SumData::firstTile, blockIdx.x)];
  const std::uint64_t tile = blockIdx.x - task.firstTile;
  const std::uint64_t begin = tile * kTileVectors * kPerVector;
  const std::uint64_t rest = task.count - begin;
  const bool last = rest <= kTileVectors * kPerVector;
  const std::uint64_t elements = last ? rest : kTileVectors * kPerVector;
  if (task.aligned == 0) {
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t i = threadIdx.x; i < elements; i += kThreads) {
      sumElement<E>(task, begin + i);
    }
    return;
  }
  const std::uint64_t firstVector = tile * kTileVectors;
  if (elements == kTileVectors * kPerVector) {
    sumVectors<E, kTileVectors / kThreads>(task, firstVector + threadIdx.x);
    return;
  }
  const std::uint64_t vectors = elements / kPerVector;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = threadIdx.x; i < vectors; i += kThreads) {
    sumVectors<E, 1>(task, firstVector + i);
  }
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = vectors * kPerVector + threadIdx.x; i < elements; i += kThreads) {
    sumElement<E>(task, begin + i);
  }
}

#define GRADLINK_SUM(Element)                                                       \
  GRADLINK_KERNEL gradlinkSum##Element(const SumData* tasks, std::uint32_t count) { \
    sumTile<Element>(tasks, count);                                                 \
  }
GRADLINK_SUM(Int8)
GRADLINK_SUM(Int32)
GRADLINK_SUM(Int64)
GRADLINK_SUM(Float16)
GRADLINK_SUM(Bfloat16)
GRADLINK_SUM(Float32)
GRADLINK_SUM(Float64)
#undef GRADLINK_SUM

}  // namespace gradlink::kernels
