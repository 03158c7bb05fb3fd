// Times copies between GPUs and host memory, alone or concurrently, and checks every byte.
//
// Timed work is queued behind a kernel that holds every stream until all is queued. So the host's
// speed does not matter, and concurrent copies begin together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/info.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// Page-locked host memory, in place of a GPU's ordinal.
inline constexpr int kHostMemory = -1;

/// From one memory to another. `by`: the GPU that copies, reading from a peer or writing to it.
struct GpuCopy {
  int from = kHostMemory;
  int to = 0;
  int by = 0;
  /// With the multiprocessors rather than a copy engine.
  bool kernel = false;
};

struct GpuCopiesOptions {
  /// Each has its own source and target.
  std::vector<GpuCopy> copies;
  /// This many are timed; the others begin with them and disturb them with twice as many copies.
  std::size_t measured = 1;
  /// Of one copy; a multiple of 16 if a kernel copies.
  std::size_t bytes = 0;
  /// Untimed copies before each sample, and copies of a sample.
  int warmup = 4;
  int loops = 16;
  int samples = 3;
  /// Check all copied data after every sample.
  bool verify = true;
  /// Whether to use peer access; otherwise the driver stages copies between GPUs.
  bool peerAccess = true;
  /// Allocate host memory near the GPU of the copy.
  bool affinity = true;
  /// Read the GPUs' state while they copy, after the last sample (GpuCopiesResult::health).
  bool health = true;
  /// Also time single copies of the first measured one by the host (GpuCopiesResult::hostSeconds).
  bool hostTimes = false;
  /// Of one sample.
  double timeoutMs = 120000;
};

struct GpuCopiesResult {
  /// Seconds of one copy, by its own start and end: [copy][sample].
  std::vector<std::vector<double>> seconds;
  /// From the common start to the last measured copy's end, by `loops`; one for each sample.
  std::vector<double> spanSeconds;
  /// The host's time to queue a copy of the first measured one on its held stream, by sample.
  std::vector<double> issueSeconds;
  /// The host's time from queueing a copy to knowing its end, by sample. Empty without `hostTimes`.
  std::vector<double> hostSeconds;
  /// Wrong elements of four bytes, over all copies and samples.
  std::uint64_t wrong = 0;
  /// The first of them that was wrong at a second look, too.
  std::optional<WrongElement> firstWrong;
  /// By copy: whether its GPU accessed both memories directly.
  std::vector<bool> direct;
  /// By copy: whether host memory was allocated near its GPU.
  std::vector<bool> near;
  /// The state of each busy GPU, by ordinal; none if NVML does not know it.
  std::vector<std::pair<int, cuda::GpuHealth>> health;
};

/// Blocks. Throws the driver's errors; unsupported if a copying kernel cannot access the memory;
/// invalidArgument for counts below 1; timeout.
GpuCopiesResult timeGpuCopies(const GpuCopiesOptions&);

}  // namespace gradlink::measure
