// Fills one KvKernels from the loops above. Included last by one file a SIMD level.
#pragma once

#include "kvstore/optimizer/simd/compression_loops.inc"
#include "kvstore/optimizer/simd/fused_loops.inc"
#include "kvstore/optimizer/simd/half_loops.inc"
#include "kvstore/optimizer/simd/kernels.h"
#include "kvstore/optimizer/simd/step_loops.inc"

namespace gradlink {
namespace {

// The order is StepKernel's. lambMoments hands nothing out.
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
      .fused32 = {Fused<float, stepSgd<float>>::run, Fused<float, stepSgdMomentum<float>>::run,
                  Fused<float, stepNesterov<float>>::run, Fused<float, stepAdam<float>>::run,
                  Fused<float, stepAdamw<float>>::run, Fused<float, stepAdagrad<float>>::run,
                  Fused<float, stepRmsprop<float>>::run,
                  Fused<float, stepRmspropCentered<float>>::run,
                  Fused<float, stepAdadelta<float>>::run, Fused<float, stepFtrl<float>>::run,
                  Fused<float, stepSignSgd<float>>::run, Fused<float, stepSignum<float>>::run,
                  nullptr, Fused<float, stepLambApply<float>>::run,
                  Fused<float, stepAddScaled<float>>::run},
      .fused64 = {Fused<double, stepSgd<double>>::run, Fused<double, stepSgdMomentum<double>>::run,
                  Fused<double, stepNesterov<double>>::run, Fused<double, stepAdam<double>>::run,
                  Fused<double, stepAdamw<double>>::run, Fused<double, stepAdagrad<double>>::run,
                  Fused<double, stepRmsprop<double>>::run,
                  Fused<double, stepRmspropCentered<double>>::run,
                  Fused<double, stepAdadelta<double>>::run, Fused<double, stepFtrl<double>>::run,
                  Fused<double, stepSignSgd<double>>::run, Fused<double, stepSignum<double>>::run,
                  nullptr, Fused<double, stepLambApply<double>>::run,
                  Fused<double, stepAddScaled<double>>::run},
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
