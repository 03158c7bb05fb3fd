// Checks of a call before it runs, and the weights of neighborhoods.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/collective.h"
#include "core/communicator.h"

namespace gradlink {

/// A neighborhood with resolved weights: out = (sum of weight * rank's input, in order) / divisor.
struct WeightRow {
  std::vector<std::pair<int, double>> terms;
  std::size_t divisor = 1;

  bool reads(int rank) const;
};

/// Throws invalidArgument if a neighborhood names an unknown rank, its own rank, or one twice.
void checkNeighborhood(const Neighborhood& own, int rank, int size);

/// One row for each rank. Throws a mismatch if a rank names a source that does not name it as a
/// destination, or the reverse. If no rank wants that check, a source that does not name the rank
/// counts with a weight of 1.
std::vector<WeightRow> resolveNeighbors(std::span<const Neighborhood> all);

/// The size of a neighborhood in its call's announcement: whole cache lines, for alignment.
constexpr std::size_t neighborRowBytes(int size) {
  const std::size_t bytes = (3 + 2 * static_cast<std::size_t>(size)) * sizeof(double);
  return (bytes + 63) / 64 * 64;
}

void writeNeighborRow(std::byte* to, const Neighborhood& own, int size);

/// The rows of all ranks from their announcements; throws as resolveNeighbors().
std::vector<WeightRow> resolveNeighborRows(int size,
                                           const std::function<const std::byte*(int rank)>& rowOf);

/// Throws invalidArgument for a root, dtype or null pointer that the call cannot have. `gpu`: the
/// ranks are GPUs, which also have the float8 types.
void checkShape(const Shape& shape, int size, bool gpu = false);
void checkPointers(const Shape& shape, int size, int rank, const void* in, const void* out);

/// Throws invalidArgument if `peer` is not a rank.
void checkPeer(const char* op, int peer, int size);

}  // namespace gradlink
