// The store without servers: `allreduce`. Every worker keeps the values and runs the optimizer; a
// push is an all-reduce, so all compute the same bits.
//
// Workers may order operations on different keys differently: they agree on the next sums
// (key_agreement.h), and everything ready on all workers is summed in one all-reduce.
#pragma once

#include <cstddef>
#include <memory>

#include "core/communicator.h"
#include "kvstore/stepping_store.h"
#include "kvstore/store.h"

namespace gradlink {

struct AllreduceStoreOptions {
  /// Arrays of a push of this worker.
  std::size_t devices = 1;
  /// Arrays of different keys are summed together up to this many bytes.
  std::size_t fuseBytes = 8 << 20;
  /// Each worker steps a part of every key and keeps its state, then shares the new values.
  bool shardOptimizer = false;
  /// How long a push may wait for the other workers' push of the same key.
  double timeoutMs = 30000;
};

/// Takes over the communicator, which holds one rank. Arrays are in host memory. Worker 0 writes
/// state files, every worker reads them.
///
/// `steps`: steps this worker's parts with shardOptimizer; null: on the host.
///
/// After leave() this worker contributes zeros to the others' sums until they have left or closed,
/// too.
std::unique_ptr<Store> makeAllreduceStore(std::unique_ptr<Communicator>,
                                          const AllreduceStoreOptions&,
                                          std::unique_ptr<SteppingStore> steps = nullptr);

}  // namespace gradlink
