// Weighted sums of integers: exact where they can be, rounded once where they cannot.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/reduce_kernels.h"

namespace gradlink {

/// weightedSums() of an integer type. A sum whose weights are whole numbers below 2^63 is exact, of
/// 64 bits; its quotient is truncated towards zero, and wraps around like a sum. Others are summed
/// in float64, in the order of their terms, divided and rounded to the nearest whole number, halves
/// to the even one; what is beyond the type becomes its least or greatest value.
void weightedIntegers(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                      std::size_t count, DType);

}  // namespace gradlink
