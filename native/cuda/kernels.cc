#include "cuda/kernels.h"

#include <algorithm>
#include <iterator>
#include <string>

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

/// Signed integers are summed as unsigned: the same bits.
DType summedAs(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return DType::int8;
    case DType::uint32:
      return DType::int32;
    case DType::uint64:
      return DType::int64;
    case DType::float8e4m3:
    case DType::float8e5m2:
      throw Error(ErrorCode::unsupported,
                  std::string("GPUs have no sum kernel for ") + nameOf(dtype))
          .stillUsable();
    default:
      return dtype;
  }
}

kernels::PatternCall patternCall(std::size_t first, std::size_t count, DType dtype, ReduceOp op,
                                 int size, std::uint64_t seed, int rank) {
  kernelType(dtype);  // refuses those that GPUs do not have
  return {.first = first,
          .count = count,
          .seed = seed,
          .size = static_cast<std::uint64_t>(std::max(1, size)),
          .type = kernels::patternType(dtype),
          .rank = rank,
          .op = op};
}

void launchPattern(Stream& stream, void* data, const kernels::PatternCall& call,
                   std::uint64_t* wrong) {
  kernelModule(stream.device(), "pattern")
      .launch(stream, "gradlinkPattern", divideUp(call.count, kernels::kPatternTile), kThreads,
              data, call, wrong);
}

}  // namespace

const char* kernelType(DType dtype) {
  constexpr const char* kTypes[] = {"Int8",    "Uint8",   "Int32",      "Uint32",
                                    "Int64",   "Uint64",  "Float16",    "Bfloat16",
                                    "Float32", "Float64", "Float8e4m3", "Float8e5m2"};
  const auto at = static_cast<std::size_t>(dtype);
  if (at < std::size(kTypes)) return kTypes[at];
  throw Error(ErrorCode::unsupported, std::string("GPUs have no kernels for ") + nameOf(dtype))
      .stillUsable();
}

std::string sumModule(DType dtype) { return std::string("sum") + kernelType(summedAs(dtype)); }

void sum(Stream& stream, TaskRing& ring, DType dtype, std::span<const SumTask> tasks) {
  std::size_t count = 0;
  std::size_t pointerCount = 0;
  for (const SumTask& task : tasks) {
    if (task.count == 0 || task.targets.empty()) continue;
    if (task.sources.empty()) throw Error(ErrorCode::invalidArgument, "the sum has no arrays");
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
    // The kernel only reads the sources.
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
  kernelModule(stream.device(), sumModule(dtype))
      .launch(stream, std::string("gradlinkSum") + kernelType(summedAs(dtype)), tiles, kThreads,
              static_cast<const SumData*>(tasksThere), static_cast<std::uint32_t>(count));
}

void weightedSum(Stream& stream, TaskRing& ring, DType dtype, void* to,
                 std::span<const void* const> from, std::span<const double> weights,
                 std::size_t count) {
  if (!isFloat(dtype) || from.empty() || from.size() != weights.size()) {
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
  const KernelModule& module = kernelModule(stream.device(), "weighted");
  const std::uint64_t tiles = divideUp(count, kernels::kWeightedTile);
  const WeightedData* const task = dataThere;
  if (dtype == DType::float64) {
    module.launch(stream, "gradlinkWeightedFloat64", tiles, kThreads, task);
  } else {
    module.launch(stream, "gradlinkWeighted", tiles, kThreads, task, dtype);
  }
}

void fillPattern(Stream& stream, void* to, std::size_t first, std::size_t count, DType dtype,
                 ReduceOp op, int size, std::uint64_t seed, int rank) {
  launchPattern(stream, to, patternCall(first, count, dtype, op, size, seed, rank), nullptr);
}

void countWrong(Stream& stream, const void* got, std::size_t first, std::size_t count, DType dtype,
                ReduceOp op, int size, std::uint64_t seed, int rank, std::uint64_t* wrong) {
  // With a counter the kernel only reads.
  launchPattern(stream, const_cast<void*>(got),
                patternCall(first, count, dtype, op, size, seed, rank), wrong);
}

void spin(Stream& stream, const std::uint32_t* flag, double limitSeconds) {
  constexpr double kLongest = 1e9;
  const auto limit = static_cast<std::uint64_t>(std::clamp(limitSeconds, 0.0, kLongest) * 1e9);
  kernelModule(stream.device(), "diagnostics").launch(stream, "gradlinkSpin", 1, 1, flag, limit);
}

void copy(Stream& stream, void* to, const void* from, std::size_t bytes, unsigned blocks) {
  if (bytes % kVectorBytes != 0 || !isAligned(to) || !isAligned(from)) {
    throw Error(ErrorCode::invalidArgument,
                "a copy with the multiprocessors needs multiples of 16 bytes");
  }
  const std::uint64_t vectors = bytes / kVectorBytes;
  const std::uint64_t tiles = divideUp(vectors, kCopyTile);
  kernelModule(stream.device(), "diagnostics")
      .launch(stream, "gradlinkCopy", blocks == 0 ? tiles : std::min<std::uint64_t>(blocks, tiles),
              kThreads, to, from, vectors);
}

void chase(Stream& stream, const void* list, std::uint32_t steps, int multiprocessor,
           std::uint64_t* result) {
  const auto all = static_cast<std::uint64_t>(stream.device().multiprocessors());
  kernelModule(stream.device(), "diagnostics")
      .launch(stream, "gradlinkChase", all, 1, list, steps,
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
