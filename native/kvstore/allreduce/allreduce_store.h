// The store without servers: `allreduce`. Every worker keeps the values and runs the optimizer; a
// push is an all-reduce over the workers, so that all of them compute the same bits.
//
// Workers may issue operations on different keys in different orders: they agree on what to sum
// next (allreduce/agreement.h), and what is ready everywhere at once travels in one all-reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/communicator.h"
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

/// Seconds of this worker's engine since the store was made.
struct AllreduceTimes {
  double copy = 0;    // packing, sums of this worker's devices included
  double wait = 0;    // until every worker had pushed
  double reduce = 0;  // in the communicator: the sums themselves
  double update = 0;  // assigning and the optimizer
};

class AllreduceStore : public Store {
 public:
  /// Sums no longer wait for this worker: it takes part in the others' with zeros, until they have
  /// left or closed too. It may still pull. After everything submitted before.
  virtual void leave(std::shared_ptr<Ticket>) = 0;
  /// Throws where setOptimizer() would, at once.
  virtual void checkOptimizer(const Optimizer&) const = 0;
  virtual AllreduceTimes times() const = 0;
  /// Bytes of this worker's sums so far.
  virtual std::uint64_t bytesReduced() const = 0;
};

/// Takes the communicator over; it holds one rank, and nobody else uses it. Arrays are the host's.
/// save: worker 0 writes the file; load: every worker reads it.
std::unique_ptr<AllreduceStore> makeAllreduceStore(std::unique_ptr<Communicator>,
                                                   const AllreduceStoreOptions&);

}  // namespace gradlink
