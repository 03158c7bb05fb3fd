// Times one collective on GPUs: data is made and checked there, and device events take the time.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/collective_loop.h"
#include "nccl/nccl.h"

namespace gradlink::measure {

/// Whether the host waits after each call, numbered as nccl-tests' -z; then its clock counts.
enum class Waiting : std::uint8_t {
  none = 0,
  /// Waits for each call, then for the other ranks.
  withBarrier = 1,
  alone = 2,
  /// As withBarrier, but the barrier is not timed.
  untimedBarrier = 3,
};

struct GpuCollectiveOptions : CollectiveOptions {
  /// Launches of the batch, captured as a graph, in each sample; 0: no graph.
  int graphLaunches = 0;
  Waiting waiting = Waiting::none;
  /// Register the memory with NCCL first.
  std::optional<nccl::RegistrationKind> registration;
  /// Make a batch one group, which the library may merge; not sendReceive's groups and scans.
  bool aggregate = false;
  /// Elements before each array in its memory.
  std::size_t unalign = 0;
  /// Time as nccl-tests does: streams are not held, a sample lasts by the host's clock until all
  /// calls have ended, and calls use successive arrays of this many bytes. Another call is checked.
  /// 0: off.
  std::size_t shiftedThrough = 0;
};

struct GpuCollectiveResult : CollectiveResult {
  /// The host's time to queue one call, if it does not wait for each.
  std::optional<double> queueingSeconds;
  /// The actual registration, if requested.
  std::optional<nccl::RegistrationKind> registered;
};

/// As timeCollective. A sample is the longest time of this process's GPUs, `shared` is ignored.
GpuCollectiveResult timeGpuCollective(nccl::NcclCommunicator&, const GpuCollectiveOptions&);

}  // namespace gradlink::measure
