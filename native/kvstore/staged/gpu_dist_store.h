// A store of several workers whose devices are GPUs, made of one whose arrays are in the host's
// memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/communicator.h"
#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/gpu/gpu_store.h"
#include "kvstore/store.h"

namespace gradlink {

struct GpuDistOptions {
  /// One ordinal a device of the store; an ordinal may repeat.
  std::vector<int> gpus;
  /// Arrays are summed in the host's memory, by the inner store (dist_sync, dist_async). Else on a
  /// GPU, and one array travels (dist_sync_device, dist_async_device).
  bool onHost = false;
  /// What sums on the GPUs: NCCL, or `peer`.
  GpuMerge merge = GpuMerge::peer;
  /// How long the GPUs may take for what they do for an operation.
  double timeoutMs = 30000;
  /// As of GpuStoreOptions, where the GPUs step.
  std::size_t leastShardBytes = 64 << 10;

  /// What DistStoreOptions::devices of the inner store must be.
  std::size_t innerDevices() const { return onHost ? gpus.size() : 1; }
};

/// Array i of an operation is device memory of gpus[i] (init: host or device memory). Everything
/// else is as `inner` does it; nothing else may use that one. Throws where a GPU is missing.
std::unique_ptr<Store> makeGpuDistStore(std::unique_ptr<Store> inner,
                                        const GpuDistOptions& options);

/// The same of a store without servers, whose `devices` is not looked at, nor `onHost` of the
/// GPUs'. With shardOptimizer each GPU of each worker steps a part of every key, and has the
/// optimizer's state of it.
std::unique_ptr<Store> makeGpuAllreduceStore(std::unique_ptr<Communicator> comm,
                                             AllreduceStoreOptions options,
                                             const GpuDistOptions& gpus);

}  // namespace gradlink
