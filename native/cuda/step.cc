#include "cuda/step.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "cuda/kernel_module.h"
#include "cuda/kernels/tasks.h"
#include "cuda/task_ring.h"

namespace gradlink::cuda {
namespace {

using kernels::kThreads;
using kernels::NormData;
using kernels::StepData;
using kernels::TrustData;

#define GRADLINK_FORMULA_NAME(none, kernel, Formula) #Formula,
/// In the order of StepKernel, which starts with these.
constexpr const char* kFormulas[] = {GRADLINK_STEP_FORMULAS(GRADLINK_FORMULA_NAME, )};
#undef GRADLINK_FORMULA_NAME

constexpr const char* kNorms = "norms";

std::string stepModule(StepKernel kernel) {
  return std::string("step") + kFormulas[static_cast<std::size_t>(kernel)];
}

const char* squaresOf(TrustRatio ratio) {
  if (ratio == TrustRatio::lars) return "LarsSquares";
  return ratio == TrustRatio::lamb ? "LambSquares" : "LbsgdSquares";
}

struct Lists {
  StepData* tasks = nullptr;
  NormData* norms = nullptr;
  TrustData* trusts = nullptr;
};

class Call {
 public:
  Call(Stream& stream, TaskRing& ring, DType dtype, StepKernel kernel, TrustRatio ratio)
      : stream_(stream), ring_(ring.impl()), dtype_(dtype), kernel_(kernel), ratio_(ratio) {}

  void run(std::span<const StepTask> tasks) {
    std::size_t pointerCount = 0;
    for (const StepTask& task : tasks) {
      if (task.count == 0) continue;
      if (task.grads.empty()) {
        throw Error(ErrorCode::invalidArgument, "a step needs at least one gradient");
      }
      count_ += 1;
      blocks_ += divideUp(task.count, kUpdateBlock);
      pointerCount += task.grads.size() + task.targets.size();
    }
    if (count_ == 0) return;
    write(tasks, pointerCount);
    if (ratio_ != TrustRatio::none) scaleRates();
    launch(stepModule(kernel_), kFormulas[static_cast<std::size_t>(kernel_)], tiles_, constTasks(),
           count32(), dtype_);
  }

 private:
  void write(std::span<const StepTask> tasks, std::size_t pointerCount) {
    const std::size_t normCount = ratio_ == TrustRatio::none ? 0 : count_;
    const TaskList list = ring_.reserve(count_ * sizeof(StepData) +
                                        normCount * (sizeof(NormData) + sizeof(TrustData)) +
                                        pointerCount * sizeof(void*));
    ListWriter writer(list);
    void** pointersThere = nullptr;
    auto* data = writer.take<StepData>(count_, there_.tasks).data();
    auto* norm = writer.take<NormData>(normCount, there_.norms).data();
    auto* trust = writer.take<TrustData>(normCount, there_.trusts).data();
    auto* pointers = writer.take<void*>(pointerCount, pointersThere).data();
    // The sums of the lanes of all arrays, then those of the blocks.
    double* lanes = nullptr;
    double* sums = nullptr;
    if (normCount != 0) {
      const std::size_t laneSums = 2 * blocks_ * kernels::kLanes;
      lanes = static_cast<double*>(ring_.scratch((laneSums + 2 * blocks_) * sizeof(double)));
      sums = lanes + laneSums;
    }
    std::uint64_t firstBlock = 0;
    for (const StepTask& task : tasks) {
      if (task.count == 0) continue;
      const std::size_t all = task.grads.size() + task.targets.size();
      *data++ = dataOf(task, pointers, pointersThere);
      pointers += all;
      pointersThere += all;
      tiles_ += divideUp(task.count, kernels::kStepTile);
      if (normCount == 0) continue;
      const std::uint64_t blocks = divideUp(task.count, kUpdateBlock);
      *norm++ = {firstBlock, blocks, lanes + 2 * firstBlock * kernels::kLanes,
                 sums + 2 * firstBlock};
      *trust++ = trustOf(task.trust);
      firstBlock += blocks;
    }
    ring_.send(list);
  }

  StepData dataOf(const StepTask& task, void** pointers, void* const* pointersThere) const {
    // The kernel only reads the gradients.
    void** end = pointers;
    for (const void* grad : task.grads) *end++ = const_cast<void*>(grad);
    end = std::copy(task.targets.begin(), task.targets.end(), end);
    StepData data{};
    data.firstTile = tiles_;
    data.count = task.count;
    data.pointers = pointersThere;
    data.grads = static_cast<std::uint32_t>(task.grads.size());
    data.targets = static_cast<std::uint32_t>(task.targets.size());
    data.weight = task.weight;
    for (std::size_t i = 0; i < task.states.size(); ++i) {
      data.states[i] = static_cast<float*>(task.states[i]);
    }
    data.master = isHalf(dtype_) ? task.master : nullptr;
    // A null pointer (an unused state) is aligned.
    const bool aligned = std::all_of(pointers, end, isAligned) && isAligned(task.weight) &&
                         std::all_of(task.states.begin(), task.states.end(), isAligned) &&
                         isAligned(data.master);
    data.aligned = aligned ? 1 : 0;
    data.scalars = rounded<float>(task.scalars);
    return data;
  }

  TrustData trustOf(const TrustNumbers& trust) const {
    return {
        trust.learningRate, trust.wd,         std::abs(trust.rescaleGrad), trust.eta, trust.epsilon,
        trust.lowerBound,   trust.upperBound, trust.layerwise ? 1u : 0u,   ratio_};
  }

  /// Computes the norms of every array, then the rates in the list.
  void scaleRates() {
    const auto* norms = static_cast<const NormData*>(there_.norms);
    launch(squaresOf(ratio_), squaresOf(ratio_), divideUp(blocks_ * kernels::kLanes, kThreads),
           constTasks(), norms, count32(), blocks_, dtype_);
    const KernelModule& module = kernelModule(stream_.device(), kNorms);
    module.launch(stream_, "gradlinkFoldLanes", divideUp(2 * blocks_, kThreads), kThreads, norms,
                  count32(), blocks_);
    module.launch(stream_, "gradlinkScaleRate", count_, 1, there_.tasks, norms,
                  static_cast<const TrustData*>(there_.trusts), count32());
  }

  template <class... Arguments>
  void launch(std::string_view module, const char* formula, std::uint64_t blocks,
              Arguments... arguments) {
    kernelModule(stream_.device(), module)
        .launch(stream_, std::string("gradlink") + formula, blocks, kThreads, arguments...);
  }

  const StepData* constTasks() const { return there_.tasks; }
  std::uint32_t count32() const { return static_cast<std::uint32_t>(count_); }

  Stream& stream_;
  TaskRing::Impl& ring_;
  DType dtype_;
  StepKernel kernel_;
  TrustRatio ratio_;
  Lists there_;
  std::size_t count_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t tiles_ = 0;
};

}  // namespace

void loadSteps(std::span<Device* const> devices, StepKernel kernel, TrustRatio ratio) {
  if (ratio == TrustRatio::none) return loadKernels(devices, {stepModule(kernel)});
  loadKernels(devices, {stepModule(kernel), squaresOf(ratio), kNorms});
}

void step(Stream& stream, TaskRing& ring, DType dtype, StepKernel kernel, TrustRatio ratio,
          std::span<const StepTask> tasks) {
  if (!runsOnGpus(kernel)) {
    throw Error(ErrorCode::unsupported, "GPUs have no kernel for this optimizer's step");
  }
  if (kernel == StepKernel::lambMoments ||
      (kernel == StepKernel::lambApply) != (ratio == TrustRatio::lamb)) {
    throw Error(ErrorCode::invalidArgument, "lamb's step is lambApply with lamb's trust ratio");
  }
  if (dtype != DType::float32 && !isHalf(dtype)) {
    throw Error(ErrorCode::invalidArgument,
                std::string("a step on a GPU needs float32 or a half type, got ") + nameOf(dtype));
  }
  Call(stream, ring, dtype, kernel, ratio).run(tasks);
}

}  // namespace gradlink::cuda
