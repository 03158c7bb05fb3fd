// How the ranks of a communicator find one another: by job and name, as threads or as processes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "core/error.h"
#include "shm/session.h"
#include "shm/shm.h"

namespace gradlink::shm {

Membership meetThreads(const JoinOptions& options, Deadline deadline);
Membership meetProcesses(const JoinOptions& options, Deadline deadline);
/// A world of one.
Membership meetNobody(const JoinOptions& options);

/// Zeroed memory of this process for a segment of `size` ranks.
Membership makePrivateSegment(int size, std::size_t slotBytes);

// ---- what both ways say when a rendezvous fails

/// Strangers that a process met with while it waited, and that may have kept ranks away.
struct Crowd {
  std::size_t connections = 0;  // that proved nothing
  std::size_t addresses = 0;    // that were passed by

  bool any() const { return connections + addresses > 0; }
};

Error missingRanks(const JoinOptions& options, const std::vector<int>& missing, Crowd crowd = {});
Error rankTakenTwice(const JoinOptions& options, int rank);
Error sizesDiffer(const JoinOptions& options, int rankA, int sizeA, int rankB, int sizeB);
/// `holder` is where ranks of this rendezvous should be, and is not one of them.
Error nameIsTaken(const JoinOptions& options, const std::string& holder);
Error joinCancelled(const JoinOptions& options);

/// Milliseconds for poll(): how long a wait may go without a look at the deadline and at
/// `cancelled`.
int pollSlice(Deadline deadline);

/// Throws what ends a rank's wait for the others before its deadline.
inline void checkWaiting(const JoinOptions& options, std::span<const int> missing) {
  if (options.cancelled != nullptr && options.cancelled->load(std::memory_order_acquire)) {
    throw joinCancelled(options);
  }
  if (options.look) options.look(missing);
}

}  // namespace gradlink::shm
