// The store without servers: `allreduce`. Every worker keeps the values and runs the optimizer; a
// push is an all-reduce over the workers, so that all of them compute the same bits.
//
// Workers may issue operations on different keys in different orders: they agree on what to sum
// next (allreduce/agreement.h), and what is ready everywhere at once travels in one all-reduce.
#pragma once

#include <cstddef>
#include <memory>

#include "core/communicator.h"
#include "kvstore/stepping_store.h"
#include "kvstore/store.h"

namespace gradlink {

struct AllreduceStoreOptions {
  /// Arrays a push of this worker brings.
  std::size_t devices = 1;
  /// Arrays of different keys are summed together up to this many bytes.
  std::size_t fuseBytes = 8 << 20;
  /// Whether each worker steps a part of every key, keeps what the optimizer has for it alone, and
  /// hands the new values to the others.
  bool shardOptimizer = false;
  /// How long a push may wait for the other workers' push of the same key.
  double timeoutMs = 30000;
};

/// Takes the communicator over; it holds one rank, and nobody else uses it. Arrays are the host's.
/// save: worker 0 writes the file; load: every worker reads it.
///
/// `steps`: steps this worker's parts with shardOptimizer; null: the host does.
///
/// After leave() this worker takes part in the others' sums with zeros, until they have left or
/// closed too.
std::unique_ptr<Store> makeAllreduceStore(std::unique_ptr<Communicator>,
                                          const AllreduceStoreOptions&,
                                          std::unique_ptr<SteppingStore> steps = nullptr);

}  // namespace gradlink
