// Holds streams until all timed work is queued, so the host's speed does not matter.
#pragma once

#include <chrono>
#include <cstdint>

#include "cuda/memory.h"
#include "cuda/stream.h"

namespace gradlink::measure {

/// Whether a launch returns before its kernel ends: not with CUDA_LAUNCH_BLOCKING=1 or under tools
/// that serialize kernels. Tested once a process, on this stream.
bool launchesReturn(cuda::Stream&);

/// Streams are held for at most 10 s, so a stopped host leaves no GPU busy: queueing takes
/// milliseconds. After a hold that gave up the limit is 0.5 s, as the cause may return.
///
/// Load the kernels of the devices first (cuda::loadKernels): loading waits for running work.
class StreamHold {
 public:
  /// Streams held from here on wait for `end`.
  void begin();
  /// Later work on the stream waits. No-op if launches wait for their kernels: it would deadlock.
  void hold(cuda::Stream&) const;
  /// Releases all. @returns false if streams were released before, after more than `seconds`
  bool end();
  double seconds() const { return longest_; }

 private:
  cuda::PinnedMemory flag_{sizeof(std::uint32_t)};
  std::chrono::steady_clock::time_point began_;
  double longest_ = 0;
};

}  // namespace gradlink::measure
