// Weighted sums of neighborhoods.
#pragma once

#include "cuda/kernels/floats.cuh"

namespace gradlink::kernels {

/// All loads precede the store, so the target may be a source.
GRADLINK_DEVICE void weightedElements(const WeightedData& task, DType type, unsigned many,
                                      std::uint64_t at) {
  Elements<> loaded{};
  float sums[kTaken];
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t s = 0; s < task.sourceCount; ++s) {
    float values[kTaken];
    loaded.load(type, many, task.sources[s], at);
    loaded.unpack(type, values);
    const auto weight = static_cast<float>(task.weights[s]);
    GRADLINK_UNROLL
    for (unsigned i = 0; i < kTaken; ++i) {
      sums[i] = s == 0 ? weight * values[i] : sums[i] + weight * values[i];
    }
  }
  loaded.pack(type, sums);
  loaded.store(type, many, task.target, at);
}

GRADLINK_KERNEL gradlinkWeighted(const WeightedData* data, DType type) {
  const WeightedData task = *data;
  forPartsOfTile(blockIdx.x, kWeightedTile, task.count, task.aligned != 0,
                 [&](unsigned many, std::uint64_t at) { weightedElements(task, type, many, at); });
}

GRADLINK_KERNEL gradlinkWeightedFloat64(const WeightedData* data) {
  const WeightedData task = *data;
  const std::uint64_t begin = blockIdx.x * kWeightedTile;
  const std::uint64_t end = task.count - begin < kWeightedTile ? task.count : begin + kWeightedTile;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    double sum = 0;
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t s = 0; s < task.sourceCount; ++s) {
      const double value = task.weights[s] * static_cast<const double*>(task.sources[s])[i];
      sum = s == 0 ? value : sum + value;
    }
    static_cast<double*>(task.target)[i] = sum;
  }
}

}  // namespace gradlink::kernels
