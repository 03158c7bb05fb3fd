// Launching the kernels of kernels.cu. Calls queue on the stream and return; pointers must be
// accessible to the stream's device.
//
// Kernels take lists of tasks, so hundreds of small arrays are one launch. A list is built on the
// host and copied beside the stream's work; every block finds its piece in it. See also compress.h
// and step.h.
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

/// The arrays of a task. A polymorphic allocator serves hundreds of tasks with one allocation.
using Sources = std::pmr::vector<const void*>;
using Targets = std::pmr::vector<void*>;

/// targets[j][i] = sources[0][i] + sources[1][i] + ..., in this order; half types in float32. One
/// source is copied bit for bit. A target may be exactly a source. Bits as reduceMany's but for
/// NaNs.
struct SumTask {
  Sources sources;
  Targets targets;
  std::size_t count = 0;
};

// Each belongs to the named module, loaded at the first call or by loadKernels().

/// Of sumModule(dtype): all tasks of one element type in one launch. Fast if all arrays of a task
/// are 16-byte aligned. `ring` keeps the list until the stream has read it.
std::string sumModule(DType);
void sum(Stream&, TaskRing& ring, DType, std::span<const SumTask>);

/// Of "weighted": to[i] = weights[0] * from[0][i] + weights[1] * from[1][i] + ..., in this order,
/// with the bits of reduce_kernels.h's weightedSum. Float types only; `to` may be exactly a source.
void weightedSum(Stream&, TaskRing& ring, DType, void* to, std::span<const void* const> from,
                 std::span<const double> weights, std::size_t count);

/// Of "pattern": the test data of native/measure/pattern.h, element first + i for rank.
void fillPattern(Stream&, void* to, std::size_t first, std::size_t count, DType, ReduceOp, int size,
                 std::uint64_t seed, int rank);
/// Adds the number of wrong elements to *wrong (a device or mapped pinned u64); rank -1: the
/// expected value is the reduction of all ranks.
void countWrong(Stream&, const void* got, std::size_t first, std::size_t count, DType, ReduceOp,
                int size, std::uint64_t seed, int rank, std::uint64_t* wrong);

/// Of "diagnostics": holds the stream until *flag (mapped memory) is set, at most `limitSeconds`.
void spin(Stream&, const std::uint32_t* flag, double limitSeconds);
/// Of "diagnostics": copies with the multiprocessors. 16-byte aligned, in multiples of 16 bytes.
/// `blocks` 0: fill the device.
void copy(Stream&, void* to, const void* from, std::size_t bytes, unsigned blocks = 0);
/// Of "diagnostics": follows a list (chaseList) for `steps` steps on one multiprocessor. result[0]:
/// nanoseconds by the global timer, on some devices in whole microseconds; result[1]: last address.
void chase(Stream&, const void* list, std::uint32_t steps, int multiprocessor,
           std::uint64_t* result);

/// "Float32": the suffix of kernel names. Throws if GPUs have no kernels of the type.
const char* kernelType(DType);

/// Writes into `image` (host memory) a ring of nodes at multiples of `stride` bytes, each the
/// address of the next, for a copy at `at`. `stride` is a multiple of 8.
void chaseList(void* image, const void* at, std::size_t nodes, std::size_t stride);

/// Pinned memory for lists and the device memory that they are copied to. Parts are reused once the
/// stream has passed them. One for each stream, which outlives it. Also has the scratch of steps.
class TaskRing {
 public:
  explicit TaskRing(Stream&);
  ~TaskRing();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradlink::cuda
