// A collective whose buffers all ranks can address: whoever is running claims parts of the work, so
// that a rank that the system does not schedule delays nobody.
#pragma once

#include <cstddef>
#include <functional>

#include "core/direct.h"
#include "shm/session.h"

namespace gradlink::shm {

/// All ranks have met for this call; `number` counts the calls made here. `views` gives the memory
/// of all ranks, the same on each; it is asked only when this rank has claimed a part, because
/// until that part is done no rank can return and free its buffers, and otherwise one may already
/// have. When a call throws what ended the communicator, drainPeers() must come before buffers go.
void runSharedDirect(Session& session, const Shape& shape, const std::function<DirectCall()>& views,
                     std::uint32_t number, CallTimeout& callTimeout);

/// Waits until no peer works on this rank's buffers. For errors that end the communicator.
void drainPeers(Session& session);

}  // namespace gradlink::shm
