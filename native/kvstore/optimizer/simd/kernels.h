// The inner loops of optimizers and gradient compression, compiled once for each SIMD level.
// Vectorized by the compiler without fused multiply-add, approximate reciprocals or roots, and with
// sums in fixed lanes, so every level gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/optimizer_step.h"

namespace gradlink {

template <class T>
struct StepArrays {
  T* weight;
  const T* grad;
  T* state[3];
  /// lambMoments: the direction, for its norm.
  T* direction;
};

template <class T>
using StepFunction = void (*)(const StepArrays<T>&, std::size_t count, const StepScalars<T>&);

/// A step with the sum of its gradients, from the left, and copies of the new weights.
template <class T>
struct FusedArrays {
  /// Without grad and direction.
  StepArrays<T> arrays;
  const void* const* grads;
  std::size_t gradCount;
  void* const* outputs;
  std::size_t outputCount;
  /// The last `streamed` outputs bypass the caches; they are aligned to a cache line at `begin`.
  std::size_t streamed;
};

template <class T>
using FusedFunction = void (*)(const FusedArrays<T>&, std::size_t begin, std::size_t end,
                               const StepScalars<T>&);

struct KvKernels {
  /// "avx512", "avx2" or "generic" (the compiler's baseline: SSE2 or NEON).
  const char* level;
  StepFunction<float> step32[kStepKernelCount];
  StepFunction<double> step64[kStepKernelCount];
  FusedFunction<float> fused32[kStepKernelCount];
  FusedFunction<double> fused64[kStepKernelCount];
  /// Sum of squares in float64, in sixteen fixed lanes.
  double (*sumOfSquares32)(const float*, std::size_t);
  double (*sumOfSquares64)(const double*, std::size_t);
  void (*quantize2)(const float* grad, float* residual, float* out, float threshold, std::size_t);
  void (*quantize1)(const float* grad, float* residual, float* out, float threshold, std::size_t);
  void (*compress2)(const float* grad, float* residual, std::uint8_t* codes, float threshold,
                    std::size_t);
  void (*compress1)(const float* grad, float* residual, std::uint8_t* codes, float threshold,
                    std::size_t);
  void (*decompress2)(const std::uint8_t* codes, float* out, float threshold, std::size_t);
  void (*decompress1)(const std::uint8_t* codes, float* out, std::size_t);
};

/// The widest level of this machine that core's simdLevel() allows.
const KvKernels& kvKernels();
/// A level by name; null if this machine or build lacks it.
const KvKernels* kvKernels(const char* level);

}  // namespace gradlink
