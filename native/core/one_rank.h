// The base of communicators that hold one of several ranks: its rank and the checks of its calls.
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
  /// Throws invalidArgument for an invalid shape, not one input and output, or a missing pointer.
  void checkBuffers(const Shape& shape, const Buffers& buffers) const;
  /// The one neighborhood of a neighborAllReduce; throws invalidArgument for another number or
  /// rank.
  const Neighborhood& ownNeighborhood(std::span<const Neighborhood> neighborhoods) const;
  /// The one message of a send or receive; throws invalidArgument for another number or a bad peer.
  Message& ownMessage(const Call& call) const;

 private:
  const int rank_;
};

}  // namespace gradlink
