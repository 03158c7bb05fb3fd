// Steps scaled by norms of the whole array (lars, lamb, lbsgd), without communication between
// threads: lane sums, block sums and ratio are separate launches in the host's order, before
// step.cuh.
#pragma once

#include "cuda/kernels/step.cuh"

namespace gradlink::kernels {

GRADLINK_DEVICE void loadStates(const float* from, unsigned many, std::uint64_t at, float* out) {
  Elements<kLanes> loaded{};
  loaded.load(DType::float32, many, from, at);
  loaded.unpack(DType::float32, out);
}

/// Of the first `many` elements kLanes apart from `at` on: makes of gradients the numbers whose
/// norm is wanted.
struct LarsSquares {
  static GRADLINK_DEVICE void others(const StepData&, unsigned, std::uint64_t, const float*,
                                     float*) {}
};

/// Of the mean gradient of the step.
struct LbsgdSquares {
  static GRADLINK_DEVICE void others(const StepData& task, unsigned many, std::uint64_t at,
                                     const float*, float* out) {
    float gathered[kTaken];
    loadStates(task.states[1], many, at, gathered);
    GRADLINK_UNROLL
    for (unsigned j = 0; j < kTaken; ++j) {
      out[j] = (gathered[j] + out[j]) / task.scalars.correction2;
    }
  }
};

/// The first half of lamb: stores the moments and measures the direction.
struct LambSquares {
  static GRADLINK_DEVICE void others(const StepData& task, unsigned many, std::uint64_t at,
                                     const float* weights, float* out) {
    float mean[kTaken];
    float variance[kTaken];
    loadStates(task.states[0], many, at, mean);
    loadStates(task.states[1], many, at, variance);
    GRADLINK_UNROLL
    for (unsigned j = 0; j < kTaken; ++j) {
      if (j >= many) continue;
      float states[2] = {mean[j], variance[j]};
      moments(bounded(task.scalars.rescale * out[j], task.scalars.clip), states, task.scalars);
      task.states[0][at + j * kLanes] = states[0];
      task.states[1][at + j * kLanes] = states[1];
      out[j] = lambDirection(weights[j], states, task.scalars);
    }
  }
};

GRADLINK_DEVICE double squared(double x) { return x * x; }

/// One thread for each lane of a block of kUpdateBlock elements.
template <class Squares>
GRADLINK_DEVICE void laneSquares(const StepData* tasks, const NormData* norms, std::uint32_t count,
                                 std::uint64_t blocks, DType type) {
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= blocks * kLanes) return;
  const std::uint32_t index = taskAt(norms, count, &NormData::firstBlock, thread / kLanes);
  const NormData& norm = norms[index];
  const StepData& task = tasks[index];
  const std::uint64_t block = thread / kLanes - norm.firstBlock;
  const auto lane = static_cast<unsigned>(thread % kLanes);
  const std::uint64_t begin = block * kUpdateBlock;
  const std::uint64_t end = task.count - begin < kUpdateBlock ? task.count : begin + kUpdateBlock;
  const DType weightType = typeOfWeights(task, type);
  double sums[2] = {0, 0};
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t at = begin + lane; at < end; at += kTaken * kLanes) {
    const std::uint64_t left = (end - at + kLanes - 1) / kLanes;
    const auto many = static_cast<unsigned>(left < kTaken ? left : kTaken);
    Elements<kLanes> loaded{};
    float weights[kTaken];
    float others[kTaken] = {};
    loaded.load(weightType, many, weightsOf(task), at);
    sumOfGrads<kLanes>(task, type, many, at, others);
    loaded.unpack(weightType, weights);
    Squares::others(task, many, at, weights, others);
    GRADLINK_UNROLL
    for (unsigned j = 0; j < kTaken; ++j) {
      if (j >= many) continue;
      sums[0] = sums[0] + squared(static_cast<double>(weights[j]));
      sums[1] = sums[1] + squared(static_cast<double>(others[j]));
    }
  }
  double* out = norm.lanes + 2 * (block * kLanes + lane);
  out[0] = sums[0];
  out[1] = sums[1];
}

/// One thread for each of a block's two sums.
GRADLINK_KERNEL gradlinkFoldLanes(const NormData* norms, std::uint32_t count,
                                  std::uint64_t blocks) {
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= 2 * blocks) return;
  const NormData& norm = norms[taskAt(norms, count, &NormData::firstBlock, thread / 2)];
  const std::uint64_t block = thread / 2 - norm.firstBlock;
  static_assert(kLanes == 16);
  double lanes[kLanes];
  GRADLINK_UNROLL
  for (unsigned i = 0; i < kLanes; ++i) {
    lanes[i] = norm.lanes[2 * (block * kLanes + i) + thread % 2];
  }
  // A tree reduction written so that the compiler unrolls it and keeps the lanes in registers.
  GRADLINK_UNROLL
  for (unsigned level = 1; level <= 4; ++level) {
    GRADLINK_UNROLL
    for (unsigned i = 0; i < kLanes / 2; ++i) {
      if (i < kLanes >> level) lanes[i] = lanes[i] + lanes[i + (kLanes >> level)];
    }
  }
  norm.sums[2 * block + thread % 2] = lanes[0];
}

GRADLINK_DEVICE double trustRatio(const TrustData& trust, double weightSquares,
                                  double otherSquares) {
  double weightNorm = root(weightSquares);
  if (trust.ratio == TrustRatio::lars) {
    const double gradNorm = trust.absoluteRescale * root(otherSquares);
    return trust.layerwise != 0 && weightNorm > 0 && gradNorm > 0
               ? trust.eta * weightNorm / (gradNorm + trust.wd * weightNorm + trust.epsilon)
               : 1;
  }
  if (trust.ratio == TrustRatio::lbsgd) {
    return lbsgdRatio(trust.wd, weightSquares, otherSquares);
  }
  // False for NaN: no bound.
  if (weightNorm < trust.lowerBound) weightNorm = trust.lowerBound;
  if (trust.upperBound < weightNorm) weightNorm = trust.upperBound;
  const double directionNorm = root(otherSquares);
  return weightNorm == 0 || directionNorm == 0 ? 1 : weightNorm / directionNorm;
}

/// One block of one thread an array, as blocks are added in order. Stores the scaled rate.
GRADLINK_KERNEL gradlinkScaleRate(StepData* tasks, const NormData* norms, const TrustData* trusts,
                                  std::uint32_t count) {
  const std::uint32_t index = blockIdx.x;
  if (index >= count) return;
  const NormData& norm = norms[index];
  double weights = 0;
  double others = 0;
  GRADLINK_UNROLL_BY_16
  for (std::uint64_t block = 0; block < norm.blocks; ++block) {
    weights = weights + norm.sums[2 * block];
    others = others + norm.sums[2 * block + 1];
  }
  const TrustData& trust = trusts[index];
  const double rate = trust.learningRate * trustRatio(trust, weights, others);
  StepScalars<float>& scalars = tasks[index].scalars;
  scalars.lr = static_cast<float>(rate);
  scalars.lrWd = static_cast<float>(rate * trust.wd);
  scalars.keep = static_cast<float>(1 - rate * trust.wd);
}

#define GRADLINK_SQUARES(Squares)                                                            \
  GRADLINK_KERNEL gradlink##Squares(const StepData* tasks, const NormData* norms,            \
                                    std::uint32_t count, std::uint64_t blocks, DType type) { \
    laneSquares<Squares>(tasks, norms, count, blocks, type);                                 \
  }
GRADLINK_SQUARES(LarsSquares)
GRADLINK_SQUARES(LambSquares)
GRADLINK_SQUARES(LbsgdSquares)
#undef GRADLINK_SQUARES

}  // namespace gradlink::kernels
