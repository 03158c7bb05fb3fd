// Holds streams until the host has queued all that is timed, so that its speed does not enter.
#pragma once

#include <chrono>
#include <cstdint>

#include "cuda/memory.h"
#include "cuda/stream.h"

namespace gradlink::measure {

/// Whether a launch returns before its kernel has ended: not with CUDA_LAUNCH_BLOCKING=1, nor under
/// tools that run kernels one by one. Tried once a process, with this stream.
bool launchesReturn(cuda::Stream&);

/// Streams are held for 10 s at most, so that a host that stops in between leaves no GPU busy:
/// queueing takes milliseconds. Once a hold of this process has given up, for 0.5 s, since what
/// kept the host may come again at each figure.
///
/// Load the kernels of the streams' devices before anything is held (cuda::loadKernels): loading
/// waits for what runs.
class StreamHold {
 public:
  /// What is held from here on waits for `end`.
  void begin();
  /// What is queued on the stream from here on waits; nothing does where launches wait for their
  /// kernels, which would keep the host from letting go.
  void hold(cuda::Stream&) const;
  /// Lets all go.
  /// @returns false when streams had to go before, because it took longer than `seconds`
  bool end();
  double seconds() const { return longest_; }

 private:
  cuda::PinnedMemory flag_{sizeof(std::uint32_t)};
  std::chrono::steady_clock::time_point began_;
  double longest_ = 0;
};

}  // namespace gradlink::measure
