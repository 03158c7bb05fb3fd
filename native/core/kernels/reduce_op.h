// Reduce operations. Sums and products of integers wrap; avg of integers truncates towards zero, as
// NCCL's. min and max propagate NaN. float16 and bfloat16 accumulate in float32 and round once, at
// the end.
#pragma once

#include <cstdint>

namespace gradlink {

enum class ReduceOp : std::uint8_t { sum = 0, prod = 1, min = 2, max = 3, avg = 4 };

inline constexpr int kReduceOpCount = 5;

constexpr const char* nameOf(ReduceOp op) {
  constexpr const char* kNames[kReduceOpCount] = {"sum", "prod", "min", "max", "avg"};
  return kNames[static_cast<int>(op)];
}

/// Where an average is taken in steps, the steps are sums.
constexpr ReduceOp stepOf(ReduceOp op) { return op == ReduceOp::avg ? ReduceOp::sum : op; }

}  // namespace gradlink
