// What the processes of a distributed store tell each other when they meet, before anything else.
#pragma once

#include "core/communicator.h"
#include "kvstore/worker/dist_store.h"

namespace gradlink {

/// Tells the others this worker's options (null: this rank is a server), and returns worker 0's as
/// far as they are the same for all: workers, servers, asynchronous, bigArrayBound, timeoutMs.
/// Collective over workers and servers, in the order of the wire. Throws mismatch, on all ranks,
/// where two workers opened different stores, or others have met than these.
DistStoreOptions agreeOnTerms(Communicator&, const DistStoreOptions* own, const CallOptions& = {});

}  // namespace gradlink
