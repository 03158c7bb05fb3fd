// The sums of windows, the same in every backend.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/dtype.h"

namespace gradlink {

void checkWindowWeight(DType dtype, double weight);

/// to = weight * from; `to` may be `from`.
void scaledCopy(void* to, const void* from, double weight, std::size_t count, DType dtype);

/// to += weight * values.
void addScaled(void* to, const void* values, double weight, std::size_t count, DType dtype);

/// to = (sum of weights[i] * arrays[i], from the left) / divisor; `to` may be one of the arrays.
void combine(void* to, std::span<const void* const> arrays, std::span<const double> weights,
             std::size_t divisor, std::size_t count, DType dtype);

}  // namespace gradlink
