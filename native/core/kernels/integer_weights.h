// Weighted sums of integers: exact if possible, otherwise rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/reduce_kernels.h"

namespace gradlink {

/// weightedSums() of an integer type. With whole weights below 2^63 the sum is exact in 64 bits,
/// its quotient is truncated towards zero and wraps. Other sums are computed in float64 in the
/// order of their terms, divided, rounded to nearest (ties to even) and saturated.
void weightedIntegers(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                      std::size_t count, DType);

}  // namespace gradlink
