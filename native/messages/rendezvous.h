// Ranks of a job that find each other by a name, so that a part of a job can make a communicator
// without the rest, in any order and on several threads, and a rank that does not come is named.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "messages/shim.h"

namespace gradlink::messages {

/// Blocks until all of `ranks` (of the job, ascending, this process among them) have come with this
/// name. The lowest of them decides for all, so that nobody is left in an MPI call that others
/// never make. Throws peerLost for one that is gone, where the job outlives it.
CommHandle meet(const std::string& name, const std::vector<int>& ranks, Deadline deadline,
                const std::atomic<bool>* cancelled);

}  // namespace gradlink::messages
