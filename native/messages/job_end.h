// How servers learn that a job over hosts is over. Workers end one by one, but MPI's own end waits
// for all processes, so the servers must hear of it first.
#pragma once

#include <atomic>

namespace gradlink::messages {

/// Makes a worker of a job with servers (GRADLINK_NUM_SERVERS) meet the whole job when it exits
/// with status 0, before MPI is finalized. Call after the first join.
void meetAtExit();

/// For a server: returns when all workers are exiting. Throws closed once `cancelled` is set, and
/// peerLost for a lost process if the job outlives it.
void waitForExit(const std::atomic<bool>* cancelled);

}  // namespace gradlink::messages
