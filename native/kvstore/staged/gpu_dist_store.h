// A store of several workers with GPUs, over one for arrays in host memory.
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
  /// One ordinal for each device of the store; may repeat.
  std::vector<int> gpus;
  /// Sum arrays in host memory, by the inner store (dist_sync, dist_async). Else on a GPU, which
  /// sends one array (dist_sync_device, dist_async_device).
  bool onHost = false;
  /// How the GPUs sum: by NCCL or by peer copies.
  GpuMerge merge = GpuMerge::peer;
  /// The timeout of the GPUs' work for an operation.
  double timeoutMs = 30000;
  /// As in GpuStoreOptions, if the GPUs step.
  std::size_t leastShardBytes = 64 << 10;

  /// The inner store's DistStoreOptions::devices.
  std::size_t innerDevices() const { return onHost ? gpus.size() : 1; }
};

/// Array i of an operation is device memory of gpus[i] (init: host or device memory). `inner`
/// serves nothing else and does the rest. Throws if a GPU is missing.
std::unique_ptr<Store> makeGpuDistStore(std::unique_ptr<Store> inner,
                                        const GpuDistOptions& options);

/// The same without servers; ignores `devices` and `onHost`. With shardOptimizer each GPU of each
/// worker steps a part of every key and keeps the optimizer's state of it.
std::unique_ptr<Store> makeGpuAllreduceStore(std::unique_ptr<Communicator> comm,
                                             AllreduceStoreOptions options,
                                             const GpuDistOptions& gpus);

}  // namespace gradlink
