// Times one collective and checks its results, natively: no JavaScript in the timed region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/collective_record.h"
#include "measure/pattern.h"

namespace gradlink::measure {

/// How the samples of a job's processes are combined into one list, the same on every rank.
enum class Combine : std::uint8_t { own = 0, mean = 1, min = 2, max = 3 };

/// All ranks must give the same values.
struct CollectiveOptions {
  const CollectiveRecord* collective = &recordOf(Kind::allReduce);
  /// As core/communicator.h counts it for this collective: in an all-gather one rank's block.
  std::size_t count = 0;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  bool inPlace = false;
  /// Arrays from Communicator::allocShared rather than plain memory.
  bool shared = false;
  int warmup = 5;
  int samples = 20;
  /// Calls of one sample: enough to make the clock's cost negligible.
  int batch = 1;
  Combine combine = Combine::max;
  /// Check all outputs of the first warm-up call and of the last timed call.
  bool verify = true;
  std::uint64_t seed = 0;
  /// Of each call; negative: the communicator's own.
  double timeoutMs = -1;
};

struct CollectiveResult {
  /// Seconds of one call for each sample (its time by its batch), which an untimed barrier
  /// precedes.
  std::vector<double> seconds;
  /// The timed regions of all samples together.
  double totalSeconds = 0;
  /// Wrong elements on all ranks, before the timing and on timed data; 0 without `verify`.
  std::uint64_t wrongBefore = 0;
  std::uint64_t wrongAfter = 0;
  /// The held ranks' first wrong element, by rank and index; nothing if a second look finds none.
  std::optional<WrongElement> firstWrong;
};

/// Collective; blocks. Throws the communicator's errors, invalidArgument for counts below 1 or an
/// impossible in-place call, and outOfMemory.
CollectiveResult timeCollective(Communicator&, const CollectiveOptions&);

}  // namespace gradlink::measure
