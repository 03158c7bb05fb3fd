// Weighted sums, of neighborhoods: an element a thread at a time, as there are few such calls.
#pragma once

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

template <class E>
GRADLINK_DEVICE void weightedTile(const WeightedData* data) {
  using Memory = typename E::Memory;
  using Wide = typename E::Wide;
  const WeightedData task = *data;
  const std::uint64_t begin = static_cast<std::uint64_t>(blockIdx.x) * kStepTile;
  const std::uint64_t rest = task.count - begin;
  const std::uint64_t end = begin + (rest < kStepTile ? rest : kStepTile);
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    Wide sum = static_cast<Wide>(task.weights[0]) *
               E::widen(static_cast<const Memory*>(task.sources[0])[i]);
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t s = 1; s < task.sourceCount; ++s) {
      const Wide value = E::widen(static_cast<const Memory*>(task.sources[s])[i]);
      sum = sum + static_cast<Wide>(task.weights[s]) * value;
    }
    static_cast<Memory*>(task.target)[i] = E::narrow(sum);
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
