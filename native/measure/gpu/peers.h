// Peer access between GPUs for a measurement.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace gradlink::measure {

/// While it lives, grants or takes away access between pairs of GPUs, both ways. At its end it
/// gives back what it took away. What it granted stays until a GPU has no room for another peer, as
/// for the ninth without NVSwitch: then a peer that an earlier measurement was granted makes room.
class PeerAccess {
 public:
  using Pair = std::pair<int, int>;

  PeerAccess(const std::vector<Pair>& pairs, bool wanted);
  /// Also if the constructor throws: what it got so far goes back.
  ~PeerAccess();
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

  /// Whether `from` can access the memory of `to`.
  bool reaches(int from, int to) const { return granted_.contains({from, to}); }

 private:
  PeerAccess() = default;

  std::set<Pair> granted_;
  std::set<Pair> taken_;
};

}  // namespace gradlink::measure
