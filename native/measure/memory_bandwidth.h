// What the machine's memory can do: the limit that stands beside every bandwidth of a collective or
// store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradlink::measure {

/// Loops over float32 arrays of equal length. The reducing ones use the package's own kernels on
/// threads with fixed parts, without any engine around them: what an engine can reach at best.
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
  /// Bytes of one array; rounded down to whole cache lines for each thread, at least one line each.
  std::size_t bytes = 0;
  /// k; copy and triad ignore it.
  int arrays = 2;
  int threads = 1;
  /// Passes before the first sample. The arrays are touched beforehand, by the threads that use
  /// them.
  int warmup = 2;
  int samples = 10;
  /// Passes that one sample times together, for arrays so small that starting the threads would
  /// count.
  int repeats = 1;
  /// On huge pages, where the system leaves that to programs: for limits of what lies on them.
  bool hugePages = false;
  /// Leaves its memory to the next call, which takes it where it fits: the first touch of memory
  /// may take longer than the loops. A call without it leaves nothing.
  bool keep = false;
};

struct MemoryBandwidth {
  /// Seconds of one pass, a value a sample: from the release of all threads until the last is done.
  std::vector<double> seconds;
  /// Bytes that one pass reads and writes. Lines that the processor reads only because they are
  /// about to be written are not counted.
  double bytes = 0;
};

/// Blocks for the whole measurement. Throws invalidArgument for counts below 1 and outOfMemory.
MemoryBandwidth memoryBandwidth(const MemoryBandwidthOptions&);

}  // namespace gradlink::measure
