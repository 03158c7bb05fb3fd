// How the ranks of a communicator find each other: by job and name, as threads or processes.
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
/// A world of one rank.
Membership meetNobody(const JoinOptions& options);

Membership makePrivateSegment(int size, std::size_t slotBytes);

// ---- errors of both kinds of rendezvous

/// Strangers met while waiting, which may have kept ranks away.
struct Strangers {
  std::size_t connections = 0;  // without a proof
  std::size_t addresses = 0;    // held by others

  bool any() const { return connections + addresses > 0; }
};

Error missingRanks(const JoinOptions& options, const std::vector<int>& missing,
                   Strangers strangers = {});
Error rankTakenTwice(const JoinOptions& options, int rank);
Error sizesDiffer(const JoinOptions& options, int rankA, int sizeA, int rankB, int sizeB);
/// `holder`, which is not a rank of this rendezvous, listens at its address.
Error nameIsTaken(const JoinOptions& options, const std::string& holder);
Error joinCancelled(const JoinOptions& options);

/// Milliseconds for poll() until the next check of the deadline and of `cancelled`.
int pollSlice(Deadline deadline);

/// Throws if a rank should stop waiting before its deadline.
inline void checkWaiting(const JoinOptions& options, std::span<const int> missing) {
  if (options.cancelled != nullptr && options.cancelled->load(std::memory_order_acquire)) {
    throw joinCancelled(options);
  }
  if (options.look) options.look(missing);
}

}  // namespace gradlink::shm
