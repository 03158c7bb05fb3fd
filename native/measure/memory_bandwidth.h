// The machine's memory bandwidth: the limit for collectives and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradlink::measure {

/// Loops over float32 arrays of equal length. The reducing ones use this package's kernels on
/// threads with fixed parts: the most that an engine can reach.
enum class MemoryLoop : std::uint8_t {
  copy = 0,              // a = b, by the C library; 1 read, 1 write
  triad = 1,             // a = b + 3 c; 2 reads, 1 write
  reduceInPlace = 2,     // every array = sum of all; k reads, k writes
  reduceOutOfPlace = 3,  // k others = sum of all; k reads, k writes
  reduceToOne = 4,       // one other = sum of all; k reads, 1 write
};
inline constexpr int kMemoryLoopCount = 5;

struct MemoryBandwidthOptions {
  MemoryLoop loop = MemoryLoop::copy;
  /// Bytes of one array; rounded down to whole cache lines for each thread, at least one.
  std::size_t bytes = 0;
  /// k; copy and triad ignore it.
  int arrays = 2;
  int threads = 1;
  /// Passes before the first sample. Each thread has touched its part before.
  int warmup = 2;
  int samples = 10;
  /// Passes of one sample, for arrays so small that starting the threads would count.
  int repeats = 1;
  /// Use huge pages if the system permits: for limits of arrays on them.
  bool hugePages = false;
  /// Keeps the memory for the next call, if it fits: first touches may take longer than the loops.
  /// A call without it frees the memory.
  bool keep = false;
};

struct MemoryBandwidth {
  /// Seconds of one pass, for each sample: from the release of all threads to the end of the last.
  std::vector<double> seconds;
  /// Bytes that one pass reads and writes, without lines that are read only to be overwritten.
  double bytes = 0;
};

/// Blocks. Throws invalidArgument for counts below 1, and outOfMemory.
MemoryBandwidth memoryBandwidth(const MemoryBandwidthOptions&);

}  // namespace gradlink::measure
