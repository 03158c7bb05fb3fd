// Fills one KvKernels from the loops above. Included last by one file a SIMD level.
#pragma once

#include "kvstore/simd/compression_loops.inc"
#include "kvstore/simd/half_loops.inc"
#include "kvstore/simd/kernels.h"
#include "kvstore/simd/step_loops.inc"

namespace gradlink {
namespace {

// The order is StepKernel's.
constexpr KvKernels tableOf(const char* level) {
  return KvKernels{
      .level = level,
      .step32 = {stepSgd<float>, stepSgdMomentum<float>, stepNesterov<float>, stepAdam<float>,
                 stepAdamw<float>, stepAdagrad<float>, stepRmsprop<float>,
                 stepRmspropCentered<float>, stepAdadelta<float>, stepFtrl<float>,
                 stepSignSgd<float>, stepSignum<float>, stepLambMoments<float>,
                 stepLambApply<float>, stepAddScaled<float>},
      .step64 = {stepSgd<double>, stepSgdMomentum<double>, stepNesterov<double>, stepAdam<double>,
                 stepAdamw<double>, stepAdagrad<double>, stepRmsprop<double>,
                 stepRmspropCentered<double>, stepAdadelta<double>, stepFtrl<double>,
                 stepSignSgd<double>, stepSignum<double>, stepLambMoments<double>,
                 stepLambApply<double>, stepAddScaled<double>},
      .sumOfSquares32 = sumOfSquares<float>,
      .sumOfSquares64 = sumOfSquares<double>,
      .fromFloat16 = fromFloat16,
      .toFloat16 = toFloat16,
      .fromBfloat16 = fromBfloat16,
      .toBfloat16 = toBfloat16,
      .quantize2 = quantize2,
      .quantize1 = quantize1,
      .compress2 = compress2,
      .compress1 = compress1,
      .decompress2 = decompress2,
      .decompress1 = decompress1,
  };
}

}  // namespace
}  // namespace gradlink
