// Weighted sums of integers: exact where they can be, rounded once where they cannot.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/reduce_kernels.h"

namespace gradlink {

/// weightedSums() of an integer type. A result whose weights are whole numbers below 2^63 is exact
/// and wraps around like a sum. Others are summed in float64, in the order of their terms, and
/// rounded to the nearest whole number, halves to the even one; what is beyond the type becomes its
/// least or greatest value.
void weightedIntegers(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                      std::size_t count, DType);

}  // namespace gradlink
