// The base of communicators that hold one rank of several: who that is, and what all of them check
// of a call before it runs.
#pragma once

#include <span>

#include "core/call.h"
#include "core/communicator.h"

namespace gradlink {

class OneRank : public Communicator {
 public:
  std::span<const int> heldRanks() const final { return {&rank_, 1}; }

 protected:
  explicit OneRank(int rank) : rank_(rank) {}

  int rank() const { return rank_; }
  /// Throws invalidArgument for a shape that cannot be, for more or fewer than one input and one
  /// output, and for a pointer that is needed and null.
  void checkBuffers(const Shape& shape, const Buffers& buffers) const;
  /// The one neighborhood of a neighborAllReduce; throws invalidArgument where there is not one, or
  /// it names ranks that it may not.
  const Neighborhood& ownNeighborhood(std::span<const Neighborhood> neighborhoods) const;
  /// The one message of a send or a receive; throws invalidArgument where there is not one, or its
  /// peer is no rank.
  Message& ownMessage(const Call& call) const;

 private:
  const int rank_;
};

}  // namespace gradlink
