// How servers learn that a job over hosts needs them no more: the workers' processes end one by
// one, but none before the servers have heard of it, because MPI's own end waits for everybody.
#pragma once

#include <atomic>

namespace gradlink::messages {

/// For a worker of a job with servers, as GRADLINK_NUM_SERVERS says; nothing for others: when this
/// process exits with status 0, it meets all of the job before MPI is finalised. After the first
/// join.
void meetAtExit();

/// For a server: returns when all workers are exiting. Throws closed once `cancelled` is set, and
/// peerLost for a process that is gone, where the job outlives it.
void waitForExit(const std::atomic<bool>* cancelled);

}  // namespace gradlink::messages
