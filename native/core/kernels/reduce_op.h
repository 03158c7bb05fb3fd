// Reduce operations. Integer sums and products wrap; integer avg truncates towards zero and, up to
// 32 bits, does not wrap. min and max propagate NaN. Halves accumulate in float32 and round once.
#pragma once

#include <cstdint>

#include "core/kernels/dtype.h"

namespace gradlink {

enum class ReduceOp : std::uint8_t { sum = 0, prod = 1, min = 2, max = 3, avg = 4 };

inline constexpr int kReduceOpCount = 5;

constexpr const char* nameOf(ReduceOp op) {
  constexpr const char* kNames[kReduceOpCount] = {"sum", "prod", "min", "max", "avg"};
  return kNames[static_cast<int>(op)];
}

constexpr ReduceOp stepOf(ReduceOp op) { return op == ReduceOp::avg ? ReduceOp::sum : op; }

/// The type of partial results, so the result rounds once: float32 for sums and products of halves.
constexpr DType partialOf(DType dtype, ReduceOp op) {
  const bool picks = op == ReduceOp::min || op == ReduceOp::max;
  return isHalf(dtype) && !picks ? DType::float32 : dtype;
}

}  // namespace gradlink
