// Times copies between GPUs and host memory, alone or beside each other, and checks every byte.
//
// What is timed is queued behind a kernel that holds every stream until the host has queued all:
// so the host's speed does not enter, and copies that run beside each other begin together.
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

/// Page-locked memory of the host, where a GPU's ordinal may stand.
inline constexpr int kHostMemory = -1;

/// From one memory to another. `by` is the GPU whose copy engine or multiprocessors do it: the one
/// that reads from a peer, or writes to it.
struct GpuCopy {
  int from = kHostMemory;
  int to = 0;
  int by = 0;
  /// With the multiprocessors rather than a copy engine.
  bool kernel = false;
};

struct GpuCopiesOptions {
  /// Each has a source and a target of its own.
  std::vector<GpuCopy> copies;
  /// The first so many are timed; the others disturb them: they begin at the same moment and make
  /// twice as many copies.
  std::size_t measured = 1;
  /// Of one copy; a multiple of 16 where one is made by a kernel.
  std::size_t bytes = 0;
  /// Copies before each sample, and copies that a sample times together.
  int warmup = 4;
  int loops = 16;
  int samples = 3;
  /// Compare all that was copied with what should have come, after every sample.
  bool verify = true;
  /// Whether GPUs may reach each other's memory; false has the driver stage what goes between
  /// them.
  bool peerAccess = true;
  /// Allocate host memory on the cores that are nearest to the GPU of the copy.
  bool affinity = true;
  /// Read how the GPUs are while they copy (GpuCopiesResult::health), after the last sample.
  bool health = true;
  /// Time single copies of the first measured one by the host too (GpuCopiesResult::hostSeconds).
  bool hostTimes = false;
  /// Of one sample.
  double timeoutMs = 120000;
};

struct GpuCopiesResult {
  /// Seconds of one copy of each measured one, by its own start and end: [copy][sample].
  std::vector<std::vector<double>> seconds;
  /// From the common start until the last of the measured ones ended, by `loops`; a value a sample.
  std::vector<double> spanSeconds;
  /// By the host's clock, of the first measured copy: how long the host takes to queue one, while
  /// its stream is held; a value a sample.
  std::vector<double> issueSeconds;
  /// By the host's clock, of the same: from before one copy is queued until the host knows that it
  /// has ended, each alone; a value a sample. Empty without `hostTimes`.
  std::vector<double> hostSeconds;
  /// Elements of four bytes that were wrong, of all copies and samples.
  std::uint64_t wrong = 0;
  /// The first of them that was wrong at a second look too.
  std::optional<WrongElement> firstWrong;
  /// By copy: whether the GPU that made it reached both memories itself.
  std::vector<bool> direct;
  /// By copy: whether host memory was allocated near its GPU.
  std::vector<bool> near;
  /// Of each GPU that took part, by ordinal, while it was busy; none where NVML does not know it.
  std::vector<std::pair<int, cuda::GpuHealth>> health;
};

/// Blocks. Throws what the driver throws; unsupported for a kernel's copy whose GPU does not reach
/// the memory; invalidArgument for counts below 1; timeout.
GpuCopiesResult timeGpuCopies(const GpuCopiesOptions&);

}  // namespace gradlink::measure
