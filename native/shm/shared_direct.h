// A collective on buffers that all ranks can address: every running rank claims parts of the work,
// so a rank that is not scheduled delays nobody.
#pragma once

#include <cstddef>
#include <functional>

#include "core/direct.h"
#include "shm/session.h"

namespace gradlink::shm {

/// All ranks have met for this call; `number` counts the calls made here. `views` returns the
/// memory of all ranks, the same on each. It is called only after this rank has claimed a part:
/// until that part is done no rank returns and frees its buffers. After an error that ended the
/// communicator, call drainPeers() before buffers are freed.
void runSharedDirect(Session& session, const Shape& shape, const std::function<DirectCall()>& views,
                     std::uint32_t number, CallTimeout& callTimeout);

/// Waits until no peer uses this rank's buffers; for errors that end the communicator.
void drainPeers(Session& session);

}  // namespace gradlink::shm
