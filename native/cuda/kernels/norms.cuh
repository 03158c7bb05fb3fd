// Steps scaled by norms of the whole array (lars, lamb, lbsgd), without communication between
// threads: lane sums, block sums and ratio are separate launches in the host's order, before
// step.cuh.
#pragma once

#include "cuda/kernels/step.cuh"

namespace gradlink::kernels {

struct LarsSquares {
  template <class E, unsigned many>
  static GRADLINK_DEVICE void others(const StepData<typename E::Wide>& task, std::uint64_t at,
                                     const typename E::Wide*, typename E::Wide* out) {
    GRADLINK_UNROLL
    for (unsigned j = 0; j < many; ++j) sumOfGrads<E, 1>(task, at + j * kLanes, out + j);
  }
};

/// Of the mean gradient of the step.
struct LbsgdSquares {
  template <class E, unsigned many>
  static GRADLINK_DEVICE void others(const StepData<typename E::Wide>& task, std::uint64_t at,
                                     const typename E::Wide*, typename E::Wide* out) {
    GRADLINK_UNROLL
    for (unsigned j = 0; j < many; ++j) {
      sumOfGrads<E, 1>(task, at + j * kLanes, out + j);
      out[j] = (task.states[1][at + j * kLanes] + out[j]) / task.scalars.correction2;
    }
  }
};

/// The first half of lamb: stores the moments and measures the direction.
struct LambSquares {
  template <class E, unsigned many>
  static GRADLINK_DEVICE void others(const StepData<typename E::Wide>& task, std::uint64_t at,
                                     const typename E::Wide* weights, typename E::Wide* out) {
    using T = typename E::Wide;
    T states[many][2];
    GRADLINK_UNROLL
    for (unsigned j = 0; j < many; ++j) {
      states[j][0] = task.states[0][at + j * kLanes];
      states[j][1] = task.states[1][at + j * kLanes];
      sumOfGrads<E, 1>(task, at + j * kLanes, out + j);
    }
    GRADLINK_UNROLL
    for (unsigned j = 0; j < many; ++j) {
      moments(bounded(task.scalars.rescale * out[j], task.scalars.clip), states[j], task.scalars);
      task.states[0][at + j * kLanes] = states[j][0];
      task.states[1][at + j * kLanes] = states[j][1];
      out[j] = lambDirection(weights[j], states[j], task.scalars);
    }
  }
};

GRADLINK_DEVICE double squared(double x) { return x * x; }

template <class Squares, class E, unsigned many>
GRADLINK_DEVICE void addSquares(const StepData<typename E::Wide>& task, std::uint64_t at,
                                double* sums) {
  typename E::Wide weights[many];
  typename E::Wide others[many];
  GRADLINK_UNROLL
  for (unsigned j = 0; j < many; ++j) loadWeights<E, 1>(task, at + j * kLanes, weights + j);
  Squares::template others<E, many>(task, at, weights, others);
  GRADLINK_UNROLL
  for (unsigned j = 0; j < many; ++j) {
    sums[0] = sums[0] + squared(static_cast<double>(weights[j]));
    sums[1] = sums[1] + squared(static_cast<double>(others[j]));
  }
}

/// One thread for each lane of a block of kUpdateBlock elements.
template <class Squares, class E>
GRADLINK_DEVICE void laneSquares(const StepData<typename E::Wide>* tasks, const NormData* norms,
                                 std::uint32_t count, std::uint64_t blocks) {
  constexpr unsigned kTogether = 4;
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= blocks * kLanes) return;
  const std::uint32_t index = taskAt(norms, count, &NormData::firstBlock, thread / kLanes);
  const NormData& norm = norms[index];
  const StepData<typename E::Wide>& task = tasks[index];
  const std::uint64_t block = thread / kLanes - norm.firstBlock;
  const auto lane = static_cast<unsigned>(thread % kLanes);
  const std::uint64_t begin = block * kUpdateBlock;
  const std::uint64_t end = task.count - begin < kUpdateBlock ? task.count : begin + kUpdateBlock;
  double sums[2] = {0, 0};
  std::uint64_t at = begin + lane;
  GRADLINK_KEEP_ROLLED
  for (; at + (kTogether - 1) * kLanes < end; at += kTogether * kLanes) {
    addSquares<Squares, E, kTogether>(task, at, sums);
  }
  GRADLINK_KEEP_ROLLED
  for (; at < end; at += kLanes) addSquares<Squares, E, 1>(task, at, sums);
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
template <class T>
GRADLINK_DEVICE void scaleRate(StepData<T>* tasks, const NormData* norms, const TrustData* trusts,
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
  StepScalars<T>& scalars = tasks[index].scalars;
  scalars.lr = static_cast<T>(rate);
  scalars.lrWd = static_cast<T>(rate * trust.wd);
  scalars.keep = static_cast<T>(1 - rate * trust.wd);
}

GRADLINK_KERNEL gradlinkScaleRate32(StepData<float>* tasks, const NormData* norms,
                                    const TrustData* trusts, std::uint32_t count) {
  scaleRate(tasks, norms, trusts, count);
}
GRADLINK_KERNEL gradlinkScaleRate64(StepData<double>* tasks, const NormData* norms,
                                    const TrustData* trusts, std::uint32_t count) {
  scaleRate(tasks, norms, trusts, count);
}

#define GRADLINK_SQUARES_KERNEL(name, Squares, E)                                                  \
  GRADLINK_KERNEL name(const StepData<E::Wide>* tasks, const NormData* norms, std::uint32_t count, \
                       std::uint64_t blocks) {                                                     \
    laneSquares<Squares, E>(tasks, norms, count, blocks);                                          \
  }
#define GRADLINK_SQUARES(Squares)                                         \
  GRADLINK_SQUARES_KERNEL(gradlink##Squares##Float16, Squares, Float16)   \
  GRADLINK_SQUARES_KERNEL(gradlink##Squares##Bfloat16, Squares, Bfloat16) \
  GRADLINK_SQUARES_KERNEL(gradlink##Squares##Float32, Squares, Float32)   \
  GRADLINK_SQUARES_KERNEL(gradlink##Squares##Float64, Squares, Float64)
GRADLINK_SQUARES(LarsSquares)
GRADLINK_SQUARES(LambSquares)
GRADLINK_SQUARES(LbsgdSquares)
#undef GRADLINK_SQUARES
#undef GRADLINK_SQUARES_KERNEL

}  // namespace gradlink::kernels
