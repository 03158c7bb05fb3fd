// One rank's neighborhood as it travels with the announcement of its call.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/call.h"
#include "core/communicator.h"

namespace gradlink::shm {

/// Whole cache lines, so that what follows is aligned.
constexpr std::size_t neighborRowBytes(int size) {
  const std::size_t bytes = (3 + 2 * static_cast<std::size_t>(size)) * sizeof(double);
  return (bytes + 63) / 64 * 64;
}

void writeNeighborRow(std::byte* to, const Neighborhood& own, int size);

/// What every rank sums, from everybody's rows; throws as resolveNeighbors().
std::vector<WeightRow> resolveNeighborRows(int size,
                                           const std::function<const std::byte*(int rank)>& rowOf);

}  // namespace gradlink::shm
