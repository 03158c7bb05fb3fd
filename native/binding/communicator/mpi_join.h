// Joining the other processes of an MPI job.
#pragma once

#include "binding/communicator/handle.h"
#include "binding/napi_setup.h"
#include "messages/join.h"

namespace gradlink::binding {

/// Joins over the hosts' own engines (messages/hosts.h), once, on any thread.
CommunicatorHandle::Join mpiJoin(messages::JoinOptions options);

/// The same from {name, ranks, timeoutMs}; `ranks`: an Int32Array, ascending; empty: all of the
/// job.
CommunicatorHandle::Join mpiJoinArg(const Napi::Value& options);

}  // namespace gradlink::binding
