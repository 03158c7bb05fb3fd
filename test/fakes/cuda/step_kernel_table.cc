// The kernels of step_kernels.cu: see kernel_table.h.
#include "cuda/kernel_table.h"
#include "cuda/step_kernels.cu"

namespace gradlink::fake {
namespace {

using kernels::NormData;
using kernels::StepData;
using kernels::TrustData;

/// Gives the arrays of the task: its gradients, then its targets.
auto readTask(Traffic& traffic, const StepData& task, DType type) {
  const std::size_t bytes = task.count * sizeOf(type);
  const auto arrays = traffic.list(task.pointers, task.grads + task.targets);
  for (std::size_t i = 0; i < arrays.size() && i < task.grads; ++i) traffic.read(arrays[i], bytes);
  if (task.master) {
    traffic.read(task.master, task.count * sizeof(float));
  } else {
    traffic.read(task.weight, bytes);
  }
  return arrays;
}

void touchStates(Traffic& traffic, const StepData& task, unsigned states, bool writes) {
  for (unsigned s = 0; s < states; ++s) {
    const std::size_t bytes = task.count * sizeof(float);
    traffic.read(task.states[s], bytes);
    if (writes) traffic.write(task.states[s], bytes);
  }
}

template <class Formula>
void stepTraffic(Traffic& traffic, const StepData* tasks, std::uint32_t count, DType type) {
  for (const auto& task : traffic.list(tasks, count)) {
    const auto arrays = readTask(traffic, task, type);
    touchStates(traffic, task, Formula::kStates, !kernels::kHasMoments<Formula>);
    const std::size_t bytes = task.count * sizeOf(type);
    traffic.write(task.weight, bytes);
    if (task.master) traffic.write(task.master, task.count * sizeof(float));
    for (std::size_t i = task.grads; i < arrays.size(); ++i) traffic.write(arrays[i], bytes);
  }
}

/// Two sums a lane of each block.
void touchNorms(Traffic& traffic, const NormData* norms, std::uint32_t count) {
  for (const NormData& norm : traffic.list(norms, count)) {
    const std::size_t sums = norm.blocks * 2 * sizeof(double);
    traffic.write(norm.lanes, sums * kernels::kLanes);
    traffic.write(norm.sums, sums);
  }
}

template <class Squares>
void squaresTraffic(Traffic& traffic, const StepData* tasks, const NormData* norms,
                    std::uint32_t count, std::uint64_t, DType type) {
  constexpr bool kWrites = std::is_same_v<Squares, kernels::LambSquares>;
  constexpr unsigned kStates = std::is_same_v<Squares, kernels::LarsSquares> ? 0 : 2;
  touchNorms(traffic, norms, count);
  for (const auto& task : traffic.list(tasks, count)) {
    readTask(traffic, task, type);
    touchStates(traffic, task, kStates, kWrites);
  }
}

void foldTraffic(Traffic& traffic, const NormData* norms, std::uint32_t count, std::uint64_t) {
  touchNorms(traffic, norms, count);
}

void scaleTraffic(Traffic& traffic, StepData* tasks, const NormData* norms, const TrustData* trusts,
                  std::uint32_t count) {
  touchNorms(traffic, norms, count);
  traffic.read(trusts, count * sizeof *trusts);
  traffic.write(tasks, count * sizeof *tasks);
}

#define GRADLINK_FAKE_STEP(none, kernel, Formula) \
  entry<&kernels::gradlink##Formula, &stepTraffic<kernels::Formula>>("gradlink" #Formula),
#define GRADLINK_FAKE_SQUARES(Squares) \
  entry<&kernels::gradlink##Squares, &squaresTraffic<kernels::Squares>>("gradlink" #Squares)

constexpr Kernel kStepKernels[] = {
    GRADLINK_STEP_FORMULAS(GRADLINK_FAKE_STEP, ) GRADLINK_FAKE_SQUARES(LarsSquares),
    GRADLINK_FAKE_SQUARES(LambSquares),
    GRADLINK_FAKE_SQUARES(LbsgdSquares),
    entry<&kernels::gradlinkFoldLanes, &foldTraffic>("gradlinkFoldLanes"),
    entry<&kernels::gradlinkScaleRate, &scaleTraffic>("gradlinkScaleRate"),
};

}  // namespace

const Kernel* findStepKernel(std::string_view name) { return find(kStepKernels, name); }

}  // namespace gradlink::fake
