// Times one collective on a communicator and checks its results, natively: no JavaScript inside the
// timed region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/collective_record.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// How the samples of a job's processes become one list. The same list on every rank.
enum class Combine : std::uint8_t { own = 0, mean = 1, min = 2, max = 3 };

/// All ranks must give the same values.
struct CollectiveOptions {
  const CollectiveRecord* collective = &recordOf(Kind::allReduce);
  /// As core/communicator.h counts it for this collective: all-gather's is one rank's block, for
  /// example.
  std::size_t count = 0;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  bool inPlace = false;
  /// Arrays from Communicator::allocShared rather than plain memory.
  bool shared = false;
  /// Calls before the first sample, not timed.
  int warmup = 5;
  int samples = 20;
  /// Calls that one sample times together: so many that reading the clock does not count.
  int batch = 1;
  Combine combine = Combine::max;
  /// Check every element of the first warm-up call's and of the last timed call's outputs.
  bool verify = true;
  std::uint64_t seed = 0;
  /// Of each call; the communicator's own when negative.
  double timeoutMs = -1;
};

struct CollectiveResult {
  /// Seconds of one call, a value a sample: the sample's time by its batch. Ranks leave a barrier,
  /// which is not timed, before each sample.
  std::vector<double> seconds;
  /// The timed regions of all samples together.
  double totalSeconds = 0;
  /// Elements that were wrong on any rank of the job, before the timing and on timed data; 0
  /// without `verify`.
  std::uint64_t wrongBefore = 0;
  std::uint64_t wrongAfter = 0;
  /// The first of the held ranks' of them, by rank and then by index; nothing where a second look
  /// finds all right.
  std::optional<WrongElement> firstWrong;
};

/// Blocks; all ranks of the communicator must call it. Throws what the communicator throws,
/// invalidArgument for counts below 1 and for in place where the collective has none, and
/// outOfMemory.
CollectiveResult timeCollective(Communicator&, const CollectiveOptions&);

}  // namespace gradlink::measure
