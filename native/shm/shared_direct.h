// A collective whose buffers all ranks can address: whoever is running claims parts of the work, so
// that a rank that the system does not schedule delays nobody.
#pragma once

#include <cstddef>
#include <functional>

#include "core/deadline.h"
#include "shm/direct.h"
#include "shm/session.h"

namespace gradlink::shm {

/// All ranks have met, and every rank passes views of the same memory; `number` counts the calls
/// made here. Returns when all parts are done. When a call throws what ended the communicator,
/// drainPeers() must come before buffers go.
void runSharedDirect(Session& session, const DirectCall& call, std::uint32_t number,
                     Deadline deadline);

/// Waits until no peer works on this rank's buffers. For errors that end the communicator.
void drainPeers(Session& session);

}  // namespace gradlink::shm
