// Options for joining the other processes of a job.
#pragma once

#include "binding/communicator/handle.h"
#include "binding/napi_setup.h"

namespace gradlink::binding {

/// Reads {backend, job, name, rank, size, timeoutMs}: `backend` is "shm" (processes of this host)
/// or "mpi" (ranks 0 to size - 1 of the job's MPI). The function joins, once, on any thread.
CommunicatorHandle::Join jobJoinArg(const Napi::Value&);

}  // namespace gradlink::binding
