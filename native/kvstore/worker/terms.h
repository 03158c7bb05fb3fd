// The first exchange between the processes of a distributed store.
#pragma once

#include "core/communicator.h"
#include "kvstore/worker/dist_store.h"

namespace gradlink {

/// Exchanges this worker's options (null: a server) and returns worker 0's common ones: workers,
/// servers, asynchronous, bigArrayBound, timeoutMs. Collective over workers and servers, in wire
/// order. Throws a mismatch on all ranks for different stores, or if the wrong ranks have met.
DistStoreOptions agreeOnTerms(Communicator&, const DistStoreOptions* own, const CallOptions& = {});

}  // namespace gradlink
