// The stores of one process on GPUs: `device`, `nccl` and `local`.
//
// Every key's value lives on one GPU, its owner, chosen so that all carry about the same bytes (for
// `local`: in pinned host memory), or in parts on all of them (gpu/shards.h). A push sums the
// devices' arrays into the owner, a pull copies from there; a push and the pulls that follow it on
// its key are one pass. All operations that are queued when the engine looks are planned together:
// arrays of one kind travel in one NCCL group or one kernel launch, however many keys they are of.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kvstore/stepping_store.h"

namespace gradlink {

enum class GpuMerge : std::uint8_t {
  automatic = 0,  // NCCL where it is there and the GPUs are distinct, else peer
  nccl = 1,       // Error(backendUnavailable) where it is not
  peer = 2,       // copies between devices and a sum kernel
  host = 3,       // pinned host memory and the CPU: the type `local`
};

struct GpuStoreOptions {
  /// One ordinal a device of the store; an ordinal may repeat.
  std::vector<int> gpus;
  GpuMerge merge = GpuMerge::automatic;
  /// Whether the GPUs may reach one another's memory: else what they exchange passes through
  /// page-locked memory of the host, and NCCL, which decides on that itself, takes no part.
  bool peer = true;
  /// Whether large keys are cut over the GPUs: each sums, steps and keeps a part of them. By NCCL
  /// that is a reduce-scatter and an all-gather. Absent: by NCCL alone, and while an optimizer is
  /// set that steps parts of arrays; keys whose rows are asked for alone stay whole.
  std::optional<bool> shardOptimizer;
  /// What a part of a key must have at least, in bytes, for the key to be cut.
  std::size_t leastShardBytes = 64 << 10;
  /// Arrays below this many bytes are packed into one buffer before NCCL sees them.
  std::size_t fuseBelowBytes = 64 << 10;
  double timeoutMs = 30000;
};

/// Array i of an operation is device memory of gpus[i], or of where the operation says. Same bits
/// as the store of CPU devices gives, where NCCL does not sum in an order of its own.
std::unique_ptr<SteppingStore> makeGpuStore(const GpuStoreOptions&);

}  // namespace gradlink
