// What is checked of a call before it runs, and the weights of neighborhoods.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/collective.h"
#include "core/communicator.h"

namespace gradlink {

/// A neighborhood whose weights are resolved: out = (sum of weight * input of rank, in this order)
/// / divisor.
struct WeightRow {
  std::vector<std::pair<int, double>> terms;
  std::size_t divisor = 1;

  bool reads(int rank) const;
};

/// Throws invalidArgument where a neighborhood names a rank that does not exist, its own, or one
/// twice.
void checkNeighborhood(const Neighborhood& own, int rank, int size);

/// One row for each rank from everybody's neighborhoods; throws mismatch where a rank names a
/// source that does not name it as a destination, or the other way round. Where no rank wants that
/// checked, a source that does not name a rank counts as if it did with a weight of 1.
std::vector<WeightRow> resolveNeighbors(std::span<const Neighborhood> all);

/// Of a rank's neighborhood as it travels with the announcement of its call: whole cache lines, so
/// that what follows is aligned.
constexpr std::size_t neighborRowBytes(int size) {
  const std::size_t bytes = (3 + 2 * static_cast<std::size_t>(size)) * sizeof(double);
  return (bytes + 63) / 64 * 64;
}

void writeNeighborRow(std::byte* to, const Neighborhood& own, int size);

/// What every rank sums, from everybody's rows; throws as resolveNeighbors().
std::vector<WeightRow> resolveNeighborRows(int size,
                                           const std::function<const std::byte*(int rank)>& rowOf);

/// Throws invalidArgument for a root or a dtype that the call cannot have, and for null pointers it
/// needs. `gpu`: the ranks are GPUs, which have the float8 types too.
void checkShape(const Shape& shape, int size, bool gpu = false);
void checkPointers(const Shape& shape, int size, int rank, const void* in, const void* out);

/// Throws invalidArgument where `peer` is no rank.
void checkPeer(const char* op, int peer, int size);

}  // namespace gradlink
