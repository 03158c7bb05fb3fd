// The kernels of kernels.cu but for their tasks' types: see kernel_table.h.
#include "cuda/kernel_table.h"

#include "cuda/host_link.h"
#include "cuda/kernels.cu"
#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

using kernels::CodeData;
using kernels::PatternCall;
using kernels::SumData;
using kernels::WeightedData;

template <class Element>
void sumTraffic(Traffic& traffic, const SumData* tasks, std::uint32_t count) {
  for (const SumData& task : traffic.list(tasks, count)) {
    const std::size_t bytes = task.count * sizeof(typename Element::Memory);
    const auto arrays = traffic.list(task.pointers, task.sources + task.targets);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      i < task.sources ? traffic.read(arrays[i], bytes) : traffic.write(arrays[i], bytes);
    }
  }
}

void weightedTraffic(Traffic& traffic, const WeightedData* task, DType type) {
  if (traffic.list(task, 1).empty()) return;
  const std::size_t bytes = task->count * sizeOf(type);
  traffic.read(task->weights, task->sourceCount * sizeof(double));
  traffic.write(task->target, bytes);
  for (const void* source : traffic.list(task->sources, task->sourceCount)) {
    traffic.read(source, bytes);
  }
}
void weightedTraffic64(Traffic& traffic, const WeightedData* task) {
  weightedTraffic(traffic, task, DType::float64);
}

template <class Bits>
std::size_t codeBytes(const CodeData& task) {
  return (task.count + Bits::kPerWord - 1) / Bits::kPerWord * 4;
}
template <class Bits>
void compressTraffic(Traffic& traffic, const CodeData* tasks, std::uint32_t count, float) {
  for (const CodeData& task : traffic.list(tasks, count)) {
    const std::size_t floats = task.count * sizeof(float);
    traffic.read(task.grad, floats);
    traffic.read(task.residual, floats);
    traffic.write(task.residual, floats);
    if (task.codes) traffic.write(task.codes, codeBytes<Bits>(task));
    if (task.out) traffic.write(task.out, floats);
  }
}
template <class Bits>
void decompressTraffic(Traffic& traffic, const CodeData* tasks, std::uint32_t count, float) {
  for (const CodeData& task : traffic.list(tasks, count)) {
    traffic.read(task.codes, codeBytes<Bits>(task));
    traffic.write(task.out, task.count * sizeof(float));
  }
}

void patternTraffic(Traffic& traffic, void* data, PatternCall call, std::uint64_t* wrong) {
  const std::size_t bytes = call.count * call.type.bytes;
  if (wrong == nullptr) {
    traffic.write(data, bytes);
    return;
  }
  traffic.read(data, bytes);
  traffic.write(wrong, sizeof *wrong);
}
void copyTraffic(Traffic& traffic, void* to, const void* from, std::uint64_t vectors) {
  traffic.read(from, vectors * sizeof(kernels::Vector));
  traffic.write(to, vectors * sizeof(kernels::Vector));
}
void spinTraffic(Traffic& traffic, const std::uint32_t* flag, std::uint64_t) {
  traffic.read(flag, sizeof *flag);
}

/// One access of a chase.
constexpr double kLocalLatency = 600e-9;
constexpr double kPeerLatency = 1200e-9;
constexpr double kHostLatency = 1500e-9;
/// By how much of it multiprocessors differ.
constexpr double kFarther = 0.05;
constexpr std::uint32_t kLooked = 256;

/// A chase is timed by the kernel itself, with a clock that is not simulated; the result is made
/// so.
struct Chase {
  static Work bind(Grid grid, void** parameters, KernelBody body) {
    const void* const list = *static_cast<const void**>(parameters[0]);
    const std::uint32_t steps = *static_cast<std::uint32_t*>(parameters[1]);
    const std::uint32_t block = *static_cast<std::uint32_t*>(parameters[2]);
    std::uint64_t* const result = *static_cast<std::uint64_t**>(parameters[3]);
    if (block >= grid.blocks) return [](Execution&) -> Status { return kOk; };
    return [list, steps, block, result, body = std::move(body)](Execution& execution) -> Status {
      Traffic traffic(execution.context);
      traffic.write(result, 2 * sizeof *result);
      const void* at = list;
      // A list is one array: some of it tells whether it is reached.
      for (std::uint32_t i = 0; i < std::min(steps, kLooked) && traffic.status() == kOk; ++i) {
        if (traffic.read(at, sizeof(void*))) at = *static_cast<const void* const*>(at);
      }
      if (traffic.status() != kOk) return traffic.status();
      if (body) {
        if (const Status status = body(execution.context)) return status;
      } else {
        kernels::blockIdx.x = block;
        kernels::gradlinkChase(list, steps, block, result);
      }
      const int place = Memory::get().placeOf(cuda::addressOf(list), 1).value_or(kPageable);
      double each = place == execution.context.device() ? kLocalLatency : kPeerLatency;
      if (place == kHost) each = kHostLatency;
      // Some multiprocessors are nearer to the memory than others; their mean is as above.
      each *= 1 + kFarther * (static_cast<int>(block % 3) - 1);
      result[0] = static_cast<std::uint64_t>(each * steps * 1e9);
      execution.now += each * steps;
      return kOk;
    };
  }
};

/// A copy between a GPU and the host is slower while another goes the opposite way.
struct CopyKernel {
  static Work bind(Grid grid, void** parameters, KernelBody body) {
    const auto placeOf = [&](int index) {
      const auto address = cuda::addressOf(*static_cast<const void**>(parameters[index]));
      return Memory::get().placeOf(address, 1).value_or(kPageable);
    };
    Work copy =
        Bound<&kernels::gradlinkCopy, &copyTraffic>::bind(grid, parameters, std::move(body));
    return [copy = std::move(copy), overHostLink = HostCopy::queue(placeOf(1), placeOf(0))](
               Execution& execution) -> Status {
      const double began = execution.now;
      const Status status = copy(execution);
      if (overHostLink) {
        execution.now = began + (execution.now - began) * overHostLink->stretch(true);
      }
      return status;
    };
  }
};

#define GRADLINK_FAKE_SUM(Element) \
  entry<&kernels::gradlinkSum##Element, &sumTraffic<kernels::Element>>("gradlinkSum" #Element)
#define GRADLINK_FAKE_KERNEL(name, traffic) entry<&kernels::name, &traffic>(#name)

constexpr Kernel kSumKernels[] = {
    GRADLINK_FAKE_SUM(Int8),
    GRADLINK_FAKE_SUM(Int32),
    GRADLINK_FAKE_SUM(Int64),
    GRADLINK_FAKE_SUM(Float16),
    GRADLINK_FAKE_SUM(Bfloat16),
    GRADLINK_FAKE_SUM(Float32),
    GRADLINK_FAKE_SUM(Float64),
    GRADLINK_FAKE_KERNEL(gradlinkWeighted, weightedTraffic),
    GRADLINK_FAKE_KERNEL(gradlinkWeightedFloat64, weightedTraffic64),
    GRADLINK_FAKE_KERNEL(gradlinkCompress2, compressTraffic<kernels::TwoBit>),
    GRADLINK_FAKE_KERNEL(gradlinkCompress1, compressTraffic<kernels::OneBit>),
    GRADLINK_FAKE_KERNEL(gradlinkDecompress2, decompressTraffic<kernels::TwoBit>),
    GRADLINK_FAKE_KERNEL(gradlinkDecompress1, decompressTraffic<kernels::OneBit>),
    GRADLINK_FAKE_KERNEL(gradlinkPattern, patternTraffic),
    {"gradlinkCopy", &CopyKernel::bind},
    GRADLINK_FAKE_KERNEL(gradlinkSpin, spinTraffic),
    {"gradlinkChase", &Chase::bind},
};

}  // namespace

const Kernel* findKernel(std::string_view name) {
  const Kernel* const found = find(kSumKernels, name);
  return found ? found : findStepKernel(name);
}

}  // namespace gradlink::fake
