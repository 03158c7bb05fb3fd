// Lets some ranks of a job find each other by name, in any order, and names a missing one.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "messages/shim.h"

namespace gradlink::messages {

/// Blocks until all of `ranks` (ascending, of the job, this process included) have come with this
/// name. The lowest decides for all, so no rank is left alone in an MPI call. Throws peerLost for a
/// rank that is gone, if the job outlives it.
CommHandle meet(const std::string& name, const std::vector<int>& ranks, Deadline deadline,
                const std::atomic<bool>* cancelled);

}  // namespace gradlink::messages
