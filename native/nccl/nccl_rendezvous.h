// Exchanges over the control communicator, before the library's rendezvous and for agreements.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "cuda/device.h"
#include "nccl/nccl.h"
#include "nccl/processes.h"

namespace gradlink::nccl {

/// Gathers `bytes` of each rank into `all`, `own` of this process's. Null processes: one rank each.
void gatherRows(Communicator& control, const std::optional<Processes>& processes, const void* own,
                void* all, std::size_t bytes, const CallOptions& options);

/// The ids for `ranks` ranks. Large worlds use several, which spreads the connections.
std::vector<UniqueId> shareIdsOver(Communicator& control, int ranks, const Options& options,
                                   double timeoutMs);

/// Exchanges how many ranks each process holds, `gpus` in this one, and sets `devices`. If one
/// cannot take part, all throw; that one throws its own error.
Processes introduce(Communicator& control, std::span<const int> gpus,
                    std::vector<cuda::Device*>& devices, double timeoutMs);

}  // namespace gradlink::nccl
