// How the ranks of a communicator find one another: by job and name, as threads or as processes.
#pragma once

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

// ---- what both ways say when a meeting fails

Error missingRanks(const JoinOptions& options, const std::vector<int>& missing);
Error rankTakenTwice(const JoinOptions& options, int rank);
Error sizesDiffer(const JoinOptions& options, int rankA, int sizeA, int rankB, int sizeB);
/// `holder` is at the address of this meeting, and is none of its ranks.
Error nameIsTaken(const JoinOptions& options, const std::string& holder);
Error joinCancelled(const JoinOptions& options);

/// Throws what ends a rank's wait for the others before its deadline.
inline void checkWaiting(const JoinOptions& options, std::span<const int> missing) {
  if (options.cancelled != nullptr && options.cancelled->load(std::memory_order_acquire)) {
    throw joinCancelled(options);
  }
  if (options.look) options.look(missing);
}

}  // namespace gradlink::shm
