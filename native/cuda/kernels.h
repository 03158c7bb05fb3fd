// Launching the kernels of kernels.cu. Each call queues on the stream and returns; pointers are
// device pointers that the stream's device reaches.
//
// Kernels take lists of tasks, so that two hundred small arrays are one launch: a list is put
// together on the host, travels in one copy beside the stream's work, and every block finds its
// piece in it. Gradient compression is in compress.h, steps of optimizers in step.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

namespace gradlink::cuda {

class TaskRing;

/// The arrays of a task. A round of hundreds of tasks takes the memory for them at once.
using Sources = std::pmr::vector<const void*>;
using Targets = std::pmr::vector<void*>;

/// targets[j][i] = sources[0][i] + sources[1][i] + ..., summed in this order; half types in
/// float32. One source: a copy to every target, bit for bit. A target may be a source exactly. The
/// same bits as reduceMany's, but that a NaN may have another payload.
struct SumTask {
  Sources sources;
  Targets targets;
  std::size_t count = 0;
};

// Each is of the module that is named, which loads at its first call (kernel_module.h's loadKernels
// does it ahead).

/// Of sumModule(dtype), as "sumFloat32": all tasks of one element type in one launch. Fast where
/// all arrays of a task start at multiples of 16 bytes. `ring` keeps the list until the stream has
/// read it.
std::string sumModule(DType);
void sum(Stream&, TaskRing& ring, DType, std::span<const SumTask>);

/// "weighted": to[i] = weights[0] * from[0][i] + weights[1] * from[1][i] + ..., in this order: the
/// bits of core/reduce_kernels.h's weightedSum. Float types only; `to` may be a source exactly.
void weightedSum(Stream&, TaskRing& ring, DType, void* to, std::span<const void* const> from,
                 std::span<const double> weights, std::size_t count);

/// Of patternModule(dtype): test data, native/measure/pattern.h's, element first + i for rank.
std::string patternModule(DType);
void fillPattern(Stream&, void* to, std::size_t first, std::size_t count, DType, ReduceOp, int size,
                 std::uint64_t seed, int rank);
/// Adds to *wrong (a device or mapped pinned u64) the elements that are not that; rank -1: not
/// the reduction of all ranks.
void countWrong(Stream&, const void* got, std::size_t first, std::size_t count, DType, ReduceOp,
                int size, std::uint64_t seed, int rank, std::uint64_t* wrong);

/// "diagnostics": holds the stream until *flag (mapped pinned memory) is not 0, or for
/// `limitSeconds`.
void spin(Stream&, const std::uint32_t* flag, double limitSeconds);
/// "diagnostics": copies with the multiprocessors; bytes a multiple of 16, both 16-byte aligned.
/// `blocks` 0: as many as fill the device.
void copy(Stream&, void* to, const void* from, std::size_t bytes, unsigned blocks = 0);
/// "diagnostics": follows a list (chaseList) for `steps` steps on one of the multiprocessors.
/// result[0]: nanoseconds it took by the device's global timer, which on some devices counts in
/// microseconds; result[1]: the last address.
void chase(Stream&, const void* list, std::uint32_t steps, int multiprocessor,
           std::uint64_t* result);

/// "Float32": as the names of kernels end. Throws where GPUs have no kernels of the type.
const char* kernelType(DType);

/// Writes into `image` (host memory) a ring of `nodes` nodes that lie `stride` bytes apart, each
/// the address of the next, for a copy of it at `at`: nodes * stride bytes; stride a multiple of 8.
void chaseList(void* image, const void* at, std::size_t nodes, std::size_t stride);

/// Pinned memory in which lists wait for their copy, and the device memory they are copied to:
/// reused in turn, each part only after the stream has passed it. One a stream; the stream must
/// outlive it. Also holds what a step needs between its launches.
class TaskRing {
 public:
  explicit TaskRing(Stream&);
  /// Waits for the stream.
  ~TaskRing();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradlink::cuda
