// Peer access between GPUs as a measurement wants it.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace gradlink::measure {

/// Grants or takes away access between pairs of GPUs, both ways, while it lives. What it took away
/// it gives back. What it granted stays, until a GPU has no room for another peer, as the ninth
/// without NVSwitch: then a peer that an earlier measurement was granted makes room.
class PeerAccess {
 public:
  using Pair = std::pair<int, int>;

  PeerAccess(const std::vector<Pair>& pairs, bool wanted);
  ~PeerAccess();
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

  /// Whether `from` reaches the memory of `to`, of one of the pairs.
  bool reaches(int from, int to) const { return granted_.contains({from, to}); }

 private:
  std::set<Pair> granted_;
  std::set<Pair> taken_;
};

}  // namespace gradlink::measure
