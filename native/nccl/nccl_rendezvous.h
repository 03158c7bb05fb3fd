// What processes tell one another over their control communicator before they meet in the library,
// and for what they agree on later.
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

/// all[r] of `bytes` each becomes what rank r gave; `own`: of each rank of this process, one after
/// the other. Without `processes` each holds one.
void gatherRows(Communicator& control, const std::optional<Processes>& processes, const void* own,
                void* all, std::size_t bytes, const CallOptions& options);

/// The ids at which so many ranks meet, the same on all processes. Ranks of large worlds meet at
/// several, which spares one process the connections of all.
std::vector<UniqueId> shareIdsOver(Communicator& control, int ranks, const Options& options,
                                   double timeoutMs);

/// How many ranks each process holds, of which this one brings `gpus`; `devices` become theirs.
/// Where one cannot take part, all throw: it its own error.
Processes introduce(Communicator& control, std::span<const int> gpus,
                    std::vector<cuda::Device*>& devices, double timeoutMs);

}  // namespace gradlink::nccl
