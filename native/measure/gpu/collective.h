// Times one collective on GPUs: data made and checked there, times taken by the devices' events.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/collective_loop.h"
#include "nccl/nccl.h"

namespace gradlink::measure {

/// Whether the host waits after each call, as nccl-tests' -z numbers it. Waiting calls are timed by
/// the host's clock.
enum class Waiting : std::uint8_t {
  none = 0,
  /// Each call is waited for, and then the other ranks.
  withBarrier = 1,
  alone = 2,
  /// As withBarrier, but the barrier is not timed.
  untimedBarrier = 3,
};

struct GpuCollectiveOptions : CollectiveOptions {
  /// The batch is captured as a graph, which a sample launches so often; 0: no graph.
  int graphLaunches = 0;
  Waiting waiting = Waiting::none;
  /// Make the memory known to NCCL beforehand.
  std::optional<nccl::RegistrationKind> registration;
  /// The calls of a batch are one group of the library, which may then join them; not those of
  /// sendReceive, which are groups themselves, and of scans.
  bool aggregate = false;
  /// Elements before each array in its memory.
  std::size_t unalign = 0;
  /// As nccl-tests times: nothing holds the streams, a sample is by the host's clock until all of
  /// its calls are known to have ended, and each call's arrays lie behind those of the call before,
  /// in memory of so many bytes. What is checked afterwards is a call of its own. 0: none of this.
  std::size_t shiftedThrough = 0;
};

struct GpuCollectiveResult : CollectiveResult {
  /// The host's, of queueing one call, where the host does not wait for each.
  std::optional<double> queueingSeconds;
  /// What the registration became; none where none was asked for.
  std::optional<nccl::RegistrationKind> registered;
};

/// As timeCollective. A sample is the longest time of the GPUs that this process holds.
/// `options.shared` does not count: memory is always the library's own.
GpuCollectiveResult timeGpuCollective(nccl::NcclCommunicator&, const GpuCollectiveOptions&);

}  // namespace gradlink::measure
