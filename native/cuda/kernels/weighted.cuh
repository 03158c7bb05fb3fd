// Weighted sums of neighborhoods, with the tiles and vectors of sum.cuh.
#pragma once

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// `vectors` vectors, kThreads apart, from `at` on. All loads precede the first store, so the
/// target may be a source; the loads of one source are in flight together.
template <class E, unsigned vectors>
GRADLINK_DEVICE void weightedVectors(const WeightedData& task, std::uint64_t at) {
  using Wide = typename E::Wide;
  Wide sums[vectors][E::kWides];
  Vector loaded[vectors];
  const Vector* from = static_cast<const Vector*>(task.sources[0]) + at;
  GRADLINK_UNROLL
  for (unsigned v = 0; v < vectors; ++v) loaded[v] = from[v * kThreads];
  Wide weight = static_cast<Wide>(task.weights[0]);
  GRADLINK_UNROLL
  for (unsigned v = 0; v < vectors; ++v) {
    E::unpack(loaded[v], sums[v]);
    GRADLINK_UNROLL
    for (unsigned i = 0; i < E::kWides; ++i) sums[v][i] = weight * sums[v][i];
  }
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t s = 1; s < task.sourceCount; ++s) {
    from = static_cast<const Vector*>(task.sources[s]) + at;
    GRADLINK_UNROLL
    for (unsigned v = 0; v < vectors; ++v) loaded[v] = from[v * kThreads];
    weight = static_cast<Wide>(task.weights[s]);
    GRADLINK_UNROLL
    for (unsigned v = 0; v < vectors; ++v) {
      Wide more[E::kWides];
      E::unpack(loaded[v], more);
      GRADLINK_UNROLL
      for (unsigned i = 0; i < E::kWides; ++i) sums[v][i] = sums[v][i] + weight * more[i];
    }
  }
  Vector* to = static_cast<Vector*>(task.target) + at;
  GRADLINK_UNROLL
  for (unsigned v = 0; v < vectors; ++v) storeVector(to + v * kThreads, E::pack(sums[v]));
}

template <class E>
GRADLINK_DEVICE void weightedElement(const WeightedData& task, std::uint64_t at) {
  using Memory = typename E::Memory;
  using Wide = typename E::Wide;
  Wide sum = static_cast<Wide>(task.weights[0]) *
             E::widen(static_cast<const Memory*>(task.sources[0])[at]);
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t s = 1; s < task.sourceCount; ++s) {
    const Wide value = E::widen(static_cast<const Memory*>(task.sources[s])[at]);
    sum = sum + static_cast<Wide>(task.weights[s]) * value;
  }
  static_cast<Memory*>(task.target)[at] = E::narrow(sum);
}

template <class E>
GRADLINK_DEVICE void weightedTile(const WeightedData* data) {
  constexpr std::uint64_t kPerVector = sizeof(Vector) / sizeof(typename E::Memory);
  constexpr std::uint64_t kTileVectors = kSumTileBytes / sizeof(Vector);
  constexpr std::uint64_t kTile = kTileVectors * kPerVector;
  const WeightedData task = *data;
  const std::uint64_t begin = blockIdx.x * kTile;
  const std::uint64_t rest = task.count - begin;
  const std::uint64_t elements = rest < kTile ? rest : kTile;
  const std::uint64_t firstVector = blockIdx.x * kTileVectors;
  if (task.aligned != 0 && elements == kTile) {
    weightedVectors<E, kTileVectors / kThreads>(task, firstVector + threadIdx.x);
    return;
  }
  const std::uint64_t vectors = task.aligned != 0 ? elements / kPerVector : 0;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = threadIdx.x; i < vectors; i += kThreads) {
    weightedVectors<E, 1>(task, firstVector + i);
  }
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = vectors * kPerVector + threadIdx.x; i < elements; i += kThreads) {
    weightedElement<E>(task, begin + i);
  }
}

#define GRADLINK_WEIGHTED(Element)                                      \
  GRADLINK_KERNEL gradlinkWeighted##Element(const WeightedData* task) { \
    weightedTile<Element>(task);                                        \
  }
GRADLINK_WEIGHTED(Float16)
GRADLINK_WEIGHTED(Bfloat16)
GRADLINK_WEIGHTED(Float32)
GRADLINK_WEIGHTED(Float64)
#undef GRADLINK_WEIGHTED

}  // namespace gradlink::kernels
