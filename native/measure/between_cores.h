// The bandwidth between the cores of a job's processes: the limit of calls with private arrays,
// whose data crosses in cache lines that one core writes and another reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/communicator.h"

namespace gradlink::measure {

/// Each over memory shared by two ranks; `alone`: by one rank while the others wait.
enum class Crossing : std::uint8_t {
  put = 0,  // private array to lines that another core has read
  get = 1,  // lines that another core wrote to a private array
  putAlone = 2,
  getAlone = 3,
};
inline constexpr std::size_t kCrossingCount = 4;

struct BetweenCoresOptions {
  /// Of one array; rounded up to whole cache lines, at least one.
  std::size_t bytes = 0;
  /// A rank reads what the rank this many before it wrote.
  int distance = 1;
  int warmup = 2;
  int samples = 12;
  /// Of each wait; negative: the communicator's own.
  double timeoutMs = -1;
};

/// This rank's shortest of all samples, by Crossing; 0: never run.
using CrossingSeconds = std::array<double, kCrossingCount>;

/// All seconds are 0 if ranks cannot map each other's memory.
struct BetweenCores {
  std::size_t bytes = 0;
  CrossingSeconds plain{};
  /// Of puts with streaming stores, and gets of their data.
  CrossingSeconds streaming{};
  /// Wrong bytes in this rank's last readings of each kind.
  std::size_t wrong = 0;
};

/// Collective; blocks. The communicator holds one rank. Each line is written by one core and read
/// by another in turn. Throws the communicator's errors, and invalidArgument for bad options.
BetweenCores timeBetweenCores(Communicator&, const BetweenCoresOptions&);

}  // namespace gradlink::measure
