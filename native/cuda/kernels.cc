#include "cuda/kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "cuda/kernels/tasks.h"
#include "cuda/task_ring.h"

namespace gradlink::cuda {
namespace {

using kernels::kThreads;
using kernels::SumData;
using kernels::WeightedData;

constexpr std::size_t kVectorBytes = 16;
constexpr std::uint64_t kCopyTile = std::uint64_t{4} * kThreads;

/// Signed integers are summed as their unsigned twins: the same bits.
const char* sumKernel(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
      return "gradlinkSumInt8";
    case DType::int32:
    case DType::uint32:
      return "gradlinkSumInt32";
    case DType::int64:
    case DType::uint64:
      return "gradlinkSumInt64";
    case DType::float16:
      return "gradlinkSumFloat16";
    case DType::bfloat16:
      return "gradlinkSumBfloat16";
    case DType::float32:
      return "gradlinkSumFloat32";
    case DType::float64:
      return "gradlinkSumFloat64";
    default:
      break;
  }
  throw Error(ErrorCode::unsupported, std::string("there is no sum of ") + nameOf(dtype))
      .stillUsable();
}

/// Null for integers.
const char* weightedKernel(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return "gradlinkWeightedFloat16";
    case DType::bfloat16:
      return "gradlinkWeightedBfloat16";
    case DType::float32:
      return "gradlinkWeightedFloat32";
    case DType::float64:
      return "gradlinkWeightedFloat64";
    default:
      return nullptr;
  }
}

}  // namespace

struct Kernels::Impl {
  const KernelModule& module;
};

Kernels::Kernels(Device& device) : impl_(new Impl{baseKernels(device)}) {}

Kernels::~Kernels() = default;

Kernels& Kernels::of(Device& device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<int, std::unique_ptr<Kernels>>;
  // Before the lock: other devices' kernels are loaded meanwhile.
  baseKernels(device);
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Kernels>& kernels = all[device.ordinal()];
  if (!kernels) kernels.reset(new Kernels(device));
  return *kernels;
}

void Kernels::sum(Stream& stream, TaskRing& ring, DType dtype, std::span<const SumTask> tasks) {
  std::size_t count = 0;
  std::size_t pointerCount = 0;
  for (const SumTask& task : tasks) {
    if (task.count == 0 || task.targets.empty()) continue;
    if (task.sources.empty()) throw Error(ErrorCode::invalidArgument, "a sum of no arrays");
    count += 1;
    pointerCount += task.sources.size() + task.targets.size();
  }
  if (count == 0) return;

  const TaskList list = ring.impl().reserve(count * sizeof(SumData) + pointerCount * sizeof(void*));
  ListWriter writer(list);
  SumData* tasksThere = nullptr;
  void** pointersThere = nullptr;
  SumData* data = writer.take(count, tasksThere).data();
  void** pointers = writer.take(pointerCount, pointersThere).data();
  std::uint64_t tiles = 0;
  for (const SumTask& task : tasks) {
    if (task.count == 0 || task.targets.empty()) continue;
    const std::size_t all = task.sources.size() + task.targets.size();
    // The kernel only reads through the first ones.
    for (const void* source : task.sources) *pointers++ = const_cast<void*>(source);
    pointers = std::copy(task.targets.begin(), task.targets.end(), pointers);
    *data++ = {.firstTile = tiles,
               .count = task.count,
               .pointers = pointersThere,
               .sources = static_cast<std::uint32_t>(task.sources.size()),
               .targets = static_cast<std::uint32_t>(task.targets.size()),
               .aligned = std::all_of(pointers - all, pointers, isAligned) ? 1u : 0u,
               .unused = 0};
    pointersThere += all;
    tiles += divideUp(task.count * sizeOf(dtype), kernels::kSumTileBytes);
  }
  ring.impl().send(list);
  impl_->module.launch(stream, sumKernel(dtype), tiles, kThreads,
                       static_cast<const SumData*>(tasksThere), static_cast<std::uint32_t>(count));
}

void Kernels::weightedSum(Stream& stream, TaskRing& ring, DType dtype, void* to,
                          std::span<const void* const> from, std::span<const double> weights,
                          std::size_t count) {
  const char* const kernel = weightedKernel(dtype);
  if (kernel == nullptr || from.empty() || from.size() != weights.size()) {
    throw Error(ErrorCode::invalidArgument,
                "a weighted sum needs arrays of a float type and a weight for each");
  }
  if (count == 0) return;
  const TaskList list = ring.impl().reserve(sizeof(WeightedData) +
                                            from.size() * (sizeof(const void*) + sizeof(double)));
  ListWriter writer(list);
  WeightedData* dataThere = nullptr;
  const void** sourcesThere = nullptr;
  double* weightsThere = nullptr;
  WeightedData& data = writer.take(1, dataThere).front();
  std::copy(from.begin(), from.end(), writer.take(from.size(), sourcesThere).begin());
  std::copy(weights.begin(), weights.end(), writer.take(from.size(), weightsThere).begin());
  data = {.count = count,
          .sources = sourcesThere,
          .weights = weightsThere,
          .sourceCount = from.size(),
          .target = to,
          .aligned = isAligned(to) && std::all_of(from.begin(), from.end(), isAligned) ? 1u : 0u};
  ring.impl().send(list);
  impl_->module.launch(stream, kernel, divideUp(count * sizeOf(dtype), kernels::kSumTileBytes),
                       kThreads, static_cast<const WeightedData*>(dataThere));
}

void Kernels::fillPattern(Stream& stream, void* to, std::size_t first, std::size_t count,
                          DType dtype, ReduceOp op, int size, std::uint64_t seed, int rank) {
  const kernels::PatternCall call{first, count, seed, static_cast<std::uint64_t>(std::max(1, size)),
                                  rank,  op,    dtype};
  impl_->module.launch(stream, "gradlinkFillPattern", divideUp(count, kernels::kPatternTile),
                       kThreads, to, call);
}

void Kernels::countWrong(Stream& stream, const void* got, std::size_t first, std::size_t count,
                         DType dtype, ReduceOp op, int size, std::uint64_t seed, int rank,
                         std::uint64_t* wrong) {
  const kernels::PatternCall call{first, count, seed, static_cast<std::uint64_t>(std::max(1, size)),
                                  rank,  op,    dtype};
  impl_->module.launch(stream, "gradlinkCountWrong", divideUp(count, kernels::kPatternTile),
                       kThreads, got, call, wrong);
}

void Kernels::spin(Stream& stream, const std::uint32_t* flag, double limitSeconds) {
  constexpr double kLongest = 1e9;
  const auto limit = static_cast<std::uint64_t>(std::clamp(limitSeconds, 0.0, kLongest) * 1e9);
  impl_->module.launch(stream, "gradlinkSpin", 1, 1, flag, limit);
}

void Kernels::copy(Stream& stream, void* to, const void* from, std::size_t bytes, unsigned blocks) {
  if (bytes % kVectorBytes != 0 || !isAligned(to) || !isAligned(from)) {
    throw Error(ErrorCode::invalidArgument,
                "a copy with the multiprocessors needs multiples of 16 bytes");
  }
  const std::uint64_t vectors = bytes / kVectorBytes;
  const std::uint64_t tiles = divideUp(vectors, kCopyTile);
  impl_->module.launch(stream, "gradlinkCopy",
                       blocks == 0 ? tiles : std::min<std::uint64_t>(blocks, tiles), kThreads, to,
                       from, vectors);
}

void Kernels::chase(Stream& stream, const void* list, std::uint32_t steps, int multiprocessor,
                    std::uint64_t* result) {
  const auto all = static_cast<std::uint64_t>(stream.device().multiprocessors());
  impl_->module.launch(stream, "gradlinkChase", all, 1, list, steps,
                       static_cast<std::uint32_t>(multiprocessor), result);
}

void chaseList(void* image, const void* at, std::size_t nodes, std::size_t stride) {
  auto* const bytes = static_cast<std::byte*>(image);
  const Address start = addressOf(at);
  for (std::size_t i = 0; i < nodes; ++i) {
    *reinterpret_cast<Address*>(bytes + i * stride) = start + (i + 1) % nodes * stride;
  }
}

}  // namespace gradlink::cuda
