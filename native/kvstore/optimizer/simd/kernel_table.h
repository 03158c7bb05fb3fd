// Fills one KvKernels from the loops above. Included last by one file for each SIMD level.
#pragma once

#include "kvstore/optimizer/simd/compression_loops.inc"
#include "kvstore/optimizer/simd/fused_loops.inc"
#include "kvstore/optimizer/simd/kernels.h"
#include "kvstore/optimizer/simd/step_loops.inc"

namespace gradlink {
namespace {

template <class Formula, class T>
constexpr FusedFunction<T> kFusedAll = Fused<T, stepAll<Formula, T>>::run;

#define GRADLINK_STEP_LOOP(T, kernel, Formula) stepAll<kernels::Formula, T>,
#define GRADLINK_FUSED_LOOP(T, kernel, Formula) kFusedAll<kernels::Formula, T>,

// In the order of StepKernel, whose last, lambMoments, has no outputs.
constexpr KvKernels tableOf(const char* level) {
  return KvKernels{
      .level = level,
      .step32 = {GRADLINK_STEP_FORMULAS(GRADLINK_STEP_LOOP, float)
                     GRADLINK_HOST_FORMULAS(GRADLINK_STEP_LOOP, float) stepLambMoments<float>},
      .step64 = {GRADLINK_STEP_FORMULAS(GRADLINK_STEP_LOOP, double)
                     GRADLINK_HOST_FORMULAS(GRADLINK_STEP_LOOP, double) stepLambMoments<double>},
      .fused32 = {GRADLINK_STEP_FORMULAS(GRADLINK_FUSED_LOOP, float)
                      GRADLINK_HOST_FORMULAS(GRADLINK_FUSED_LOOP, float) nullptr},
      .fused64 = {GRADLINK_STEP_FORMULAS(GRADLINK_FUSED_LOOP, double)
                      GRADLINK_HOST_FORMULAS(GRADLINK_FUSED_LOOP, double) nullptr},
      .sumOfSquares32 = sumOfSquares<float>,
      .sumOfSquares64 = sumOfSquares<double>,
      .quantize2 = quantize2,
      .quantize1 = quantize1,
      .compress2 = compress2,
      .compress1 = compress1,
      .decompress2 = decompress2,
      .decompress1 = decompress1,
  };
}

#undef GRADLINK_STEP_LOOP
#undef GRADLINK_FUSED_LOOP

}  // namespace
}  // namespace gradlink
