// A worker's part of a sum in an `allreduce` store: its devices' arrays, summed.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels/partial.h"

namespace gradlink {

/// Partial::sum() on the shared thread pool.
void sumInto(std::byte* target, const std::vector<const void*>& arrays, std::size_t first,
             std::size_t count, const Partial& partial);

}  // namespace gradlink
