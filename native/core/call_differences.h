// What ranks are told when they made different calls: the same on all of them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace gradlink {

/// Who called what, ranks of equal calls together, in the order in which the calls were added.
class CallGroups {
 public:
  void add(int rank, const std::string& call);
  void add(std::span<const int> ranks, const std::string& call);

  /// "ranks 0, 2 called barrier; rank 1 called split".
  std::string text() const;
  /// The first rank of the second group: whom to blame, since it differs from the first. -1 where
  /// all made the same call.
  int odd() const;
  /// The first rank whose call differs from this rank's; -1 where there is none.
  int otherThan(int rank) const;

 private:
  std::vector<std::pair<std::string, std::vector<int>>> groups_;
};

/// "rank 3", "ranks 1, 2 and 5"; the first so many of many.
std::string listOfRanks(const std::vector<int>& ranks);

/// The mismatch that all ranks throw, each for its own call; the communicator stays usable, as
/// nothing was moved. `groups`: CallGroups::text(); `other`: of Error.
Error differentCalls(const char* op, const std::string& groups, int odd, int other);
inline Error differentCalls(const char* op, const CallGroups& groups, int self) {
  return differentCalls(op, groups.text(), groups.odd(), groups.otherThan(self));
}

}  // namespace gradlink
