// Optimizer steps on a GPU: the formulas of native/kvstore, with the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/kernels/dtype.h"
#include "core/kernels/optimizer_step.h"
#include "cuda/kernels.h"

namespace gradlink::cuda {

/// For steps with a trust ratio, which scales the rate of a whole array.
struct TrustNumbers {
  /// Before the ratio; StepScalars' lr, lrWd and keep are recomputed from the product.
  double learningRate = 0;
  double wd = 0;
  double rescaleGrad = 1;
  /// False: the ratio of lars is 1.
  bool layerwise = true;
  /// lars only.
  double eta = 0;
  double epsilon = 0;
  /// lamb only: bounds of the weights' norm; NaN: none.
  double lowerBound = std::numeric_limits<double>::quiet_NaN();
  double upperBound = std::numeric_limits<double>::quiet_NaN();
};

/// weight := step(weight, sum of grads). Of float32 and half types, in float32; the sum of halves
/// rounds to half, as on the host. float64 is stepped by the host: few GPUs are made for it.
struct StepTask {
  /// `count` elements each, summed from the left in the same pass.
  Sources grads;
  void* weight = nullptr;
  /// In float32; null if unused.
  std::array<void*, 3> states{};
  /// multiPrecision's float32 weights of a half type, or null.
  float* master = nullptr;
  /// Copies of the new weights.
  Targets targets;
  std::size_t count = 0;
  StepScalars<double> scalars;
  TrustNumbers trust;
};

/// Whether GPUs take the step: else the host does.
constexpr bool runsOnGpus(DType dtype, StepKernel kernel) {
  return (dtype == DType::float32 || isHalf(dtype)) && runsOnGpus(kernel);
}

/// Loads the kernels on these devices, which waits for them; otherwise the first step does it.
void loadSteps(std::span<Device* const>, StepKernel, TrustRatio);

/// All tasks of one element type and optimizer: one launch, four with a trust ratio. Arrays that
/// are not 16-byte aligned are slower. For lamb `kernel` is lambApply.
void step(Stream&, TaskRing&, DType, StepKernel kernel, TrustRatio, std::span<const StepTask>);

}  // namespace gradlink::cuda
