// Every kernel of a module by its name: GRADLINK_BASE_KERNELS(X) for kernels.cu,
// GRADLINK_STEP_KERNELS(X) for step_kernels.cu. X(name) with the name of the function.
#pragma once

#include "core/kernels/optimizer_step.h"

#define GRADLINK_BASE_KERNELS(X) \
  X(gradlinkSumInt8)             \
  X(gradlinkSumInt32)            \
  X(gradlinkSumInt64)            \
  X(gradlinkSumFloat16)          \
  X(gradlinkSumBfloat16)         \
  X(gradlinkSumFloat32)          \
  X(gradlinkSumFloat64)          \
  X(gradlinkWeightedFloat16)     \
  X(gradlinkWeightedBfloat16)    \
  X(gradlinkWeightedFloat32)     \
  X(gradlinkWeightedFloat64)     \
  X(gradlinkFillPattern)         \
  X(gradlinkCountWrong)          \
  X(gradlinkCompress2)           \
  X(gradlinkCompress1)           \
  X(gradlinkDecompress2)         \
  X(gradlinkDecompress1)         \
  X(gradlinkCopy)                \
  X(gradlinkChase)               \
  X(gradlinkSpin)

/// Four kernels a formula, one for each float type.
#define GRADLINK_OF_FLOATS(X, formula) \
  X(formula##Float16) X(formula##Bfloat16) X(formula##Float32) X(formula##Float64)

#define GRADLINK_KERNELS_OF(X, kernel, Formula) GRADLINK_OF_FLOATS(X, gradlink##Formula)

#define GRADLINK_STEP_KERNELS(X)                 \
  GRADLINK_STEP_FORMULAS(GRADLINK_KERNELS_OF, X) \
  GRADLINK_OF_FLOATS(X, gradlinkLarsSquares)     \
  GRADLINK_OF_FLOATS(X, gradlinkLambSquares)     \
  GRADLINK_OF_FLOATS(X, gradlinkLbsgdSquares)    \
  X(gradlinkFoldLanes)                           \
  X(gradlinkScaleRate32)                         \
  X(gradlinkScaleRate64)
