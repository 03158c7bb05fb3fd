// Which ranks share a host.
#pragma once

#include <cstddef>
#include <vector>

namespace gradlink {

/// Nodes are numbered by their lowest ranks, and list ranks in ascending order, the leader first.
class NodeMap {
 public:
  /// `nodeOf`: a number for each rank, equal for ranks of one host.
  NodeMap(const std::vector<int>& nodeOf, int rank);

  int size() const { return static_cast<int>(nodeOf_.size()); }
  int rank() const { return rank_; }
  int nodes() const { return static_cast<int>(members_.size()); }
  int widest() const { return widest_; }

  int nodeOf(int rank) const { return nodeOf_[static_cast<std::size_t>(rank)]; }
  int localOf(int rank) const { return localOf_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& members(int node) const {
    return members_[static_cast<std::size_t>(node)];
  }
  int leaderOf(int node) const { return members(node).front(); }

  int ownNode() const { return nodeOf(rank_); }
  int ownLocal() const { return localOf(rank_); }
  const std::vector<int>& ownMembers() const { return members(ownNode()); }
  bool leads() const { return ownLocal() == 0; }

  /// The slot of a rank if every node has widest() slots, some possibly empty; and their number.
  std::size_t slotOf(int rank) const {
    return static_cast<std::size_t>(nodeOf(rank)) * static_cast<std::size_t>(widest_) +
           static_cast<std::size_t>(localOf(rank));
  }
  std::size_t slots() const { return members_.size() * static_cast<std::size_t>(widest_); }
  /// Whether slotOf(r) == r for every rank and no slot is empty.
  bool slotsAreRanks() const { return slotsAreRanks_; }

 private:
  int rank_;
  std::vector<int> nodeOf_;
  std::vector<int> localOf_;
  std::vector<std::vector<int>> members_;
  int widest_ = 0;
  bool slotsAreRanks_ = true;
};

}  // namespace gradlink
