// Peer access between GPUs for a measurement.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace gradlink::measure {

/// Enables or disables access between pairs of GPUs, both ways, while it lives. Access that it
/// disabled is restored; access that it enabled stays.
class PeerAccess {
 public:
  using Pair = std::pair<int, int>;

  PeerAccess(const std::vector<Pair>& pairs, bool wanted);
  ~PeerAccess();
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

  /// Whether `from` can access the memory of `to`.
  bool reaches(int from, int to) const { return granted_.contains({from, to}); }

 private:
  std::set<Pair> granted_;
  std::set<Pair> taken_;
};

}  // namespace gradlink::measure
