// What ranks do together: one collective or one set of messages, its arithmetic, and the time that
// a machine with the configured links would take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradlink::fake {

enum class Collective : std::int32_t {
  allReduce,
  reduce,
  broadcast,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  /// No collective of data: memory of `count` bytes becomes a window.
  window,
};

/// A collective as all ranks must agree on it, and each rank's factor.
struct Step {
  Collective kind = Collective::allReduce;
  std::int32_t type = 0;  // NCCL's numbers
  std::int32_t op = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;
  /// Where in registered memory the arrays are, 0 for memory that is not. What ranks register
  /// they use together and at the same place: the library moves data wrongly, or waits forever,
  /// where they do not.
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  /// Of a scaled sum; each rank has its own.
  double scale = 1;

  bool sameAs(const Step& other) const {
    return kind == other.kind && type == other.type && op == other.op && root == other.root &&
           count == other.count && in == other.in && out == other.out;
  }
};

/// NCCL's number of an operation that was made by ncclRedOpCreatePreMulSum, in a Step.
inline constexpr int kScaledSum = 5;

/// One rank's part.
struct Entry {
  Step step;
  const void* in = nullptr;
  void* out = nullptr;
};

std::size_t bytesOf(int type);
bool isType(int type);
/// Bytes that a rank reads and writes.
std::size_t inBytes(const Step& step, int rank, int size);
std::size_t outBytes(const Step& step, int rank, int size);

/// As the library logs how ranks reach one another, where NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS has
/// INIT and NCCL_DEBUG_FILE names a file.
void logConnections(const std::vector<int>& devices);
/// The same of its choice, where NCCL_DEBUG_SUBSYS has TUNING: a ring, with protocol LL up to 64
/// KiB.
void logTuning(const Step& step, int size);

/// Moves and reduces; one entry a rank, all of the same step, and each rank's GPU.
void carryOut(const std::vector<Entry>& entries, const std::vector<int>& devices);

/// Seconds that a ring over these GPUs takes. `nominal`: as if every link were as fast as the
/// fastest.
double secondsOf(const Step& step, const std::vector<int>& devices, bool nominal);
/// Seconds of a message.
double secondsOf(std::size_t bytes, int from, int to);

}  // namespace gradlink::fake
