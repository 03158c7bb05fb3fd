// What passes between the cores of a job's processes: the limit of calls whose arrays their own
// process alone can address, so that data go through lines that one core writes and another reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/communicator.h"

namespace gradlink::measure {

/// Each over memory that two ranks see; `alone` by one rank while the others wait.
enum class Crossing : std::uint8_t {
  put = 0,  // own array to lines that another core has read
  get = 1,  // lines that another core wrote to own array
  putAlone = 2,
  getAlone = 3,
};
inline constexpr std::size_t kCrossingCount = 4;

struct BetweenCoresOptions {
  /// Of one array; rounded up to whole cache lines, at least one.
  std::size_t bytes = 0;
  /// A rank reads what the rank so many before it wrote.
  int distance = 1;
  int warmup = 2;
  int samples = 12;
  /// Of each wait; the communicator's own when negative.
  double timeoutMs = -1;
};

/// This rank's shortest of all samples, by Crossing; 0 of what it never did.
using CrossingSeconds = std::array<double, kCrossingCount>;

/// All seconds are 0 where ranks do not see each other's memory.
struct BetweenCores {
  /// Of one array.
  std::size_t bytes = 0;
  CrossingSeconds plain{};
  /// Of puts that bypass the caches, and gets of what they put.
  CrossingSeconds streaming{};
  /// Bytes of this rank's readings, the last of each kind, that are not the writer's.
  std::size_t wrong = 0;
};

/// Blocks; all ranks of the communicator, which holds one, must call it alike. Each line is written
/// by one core and read by another in turn. Throws what the communicator throws, and
/// invalidArgument for counts below 1 and a distance that is no other rank's.
BetweenCores timeBetweenCores(Communicator&, const BetweenCoresOptions&);

}  // namespace gradlink::measure
