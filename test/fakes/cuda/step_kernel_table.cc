// The kernels of step_kernels.cu: see kernel_table.h.
#include "cuda/kernel_table.h"
#include "cuda/step_kernels.cu"

namespace gradlink::fake {
namespace {

using kernels::NormData;
using kernels::StepData;
using kernels::TrustData;

template <class E>
Status readGrads(Traffic& traffic, const StepData<typename E::Wide>& task) {
  const std::uint32_t pointers = task.grads + task.targets;
  if (const Status status = traffic.read(task.pointers, pointers * sizeof(void*))) return status;
  for (std::uint32_t i = 0; i < task.grads; ++i) {
    const Status status = traffic.read(task.pointers[i], task.count * sizeof(typename E::Memory));
    if (status != kOk) return status;
  }
  return kOk;
}

template <class E>
Status readWeights(Traffic& traffic, const StepData<typename E::Wide>& task) {
  if (task.master) return traffic.read(task.master, task.count * sizeof(typename E::Wide));
  return traffic.read(task.weight, task.count * sizeof(typename E::Memory));
}

template <class E>
Status touchStates(Traffic& traffic, const StepData<typename E::Wide>& task, unsigned states,
                   bool writes) {
  for (unsigned s = 0; s < states; ++s) {
    const std::size_t bytes = task.count * sizeof(typename E::Wide);
    if (const Status status = traffic.read(task.states[s], bytes)) return status;
    if (!writes) continue;
    if (const Status status = traffic.write(task.states[s], bytes)) return status;
  }
  return kOk;
}

template <class E>
Status writeWeights(Traffic& traffic, const StepData<typename E::Wide>& task) {
  const std::size_t bytes = task.count * sizeof(typename E::Memory);
  Status status = traffic.write(task.weight, bytes);
  if (status == kOk && task.master) {
    status = traffic.write(task.master, task.count * sizeof(typename E::Wide));
  }
  for (std::uint32_t t = 0; t < task.targets && status == kOk; ++t) {
    status = traffic.write(task.pointers[task.grads + t], bytes);
  }
  return status;
}

template <class Formula, class E>
Status stepTraffic(Traffic& traffic, const StepData<typename E::Wide>* tasks, std::uint32_t count) {
  constexpr bool kMoments = kernels::kHasMoments<Formula>;
  if (const Status status = traffic.read(tasks, count * sizeof *tasks)) return status;
  for (const auto* task = tasks; task != tasks + count; ++task) {
    if (const Status status = readGrads<E>(traffic, *task)) return status;
    if (const Status status = readWeights<E>(traffic, *task)) return status;
    if (const Status status = touchStates<E>(traffic, *task, Formula::kStates, !kMoments)) {
      return status;
    }
    if (const Status status = writeWeights<E>(traffic, *task)) return status;
  }
  return kOk;
}

/// Two sums a lane of each block.
Status touchNorms(Traffic& traffic, const NormData* norms, std::uint32_t count) {
  if (const Status status = traffic.read(norms, count * sizeof *norms)) return status;
  for (const NormData* norm = norms; norm != norms + count; ++norm) {
    const std::size_t sums = norm->blocks * 2 * sizeof(double);
    if (const Status status = traffic.write(norm->lanes, sums * kernels::kLanes)) return status;
    if (const Status status = traffic.write(norm->sums, sums)) return status;
  }
  return kOk;
}

template <class Squares, class E>
Status squaresTraffic(Traffic& traffic, const StepData<typename E::Wide>* tasks,
                      const NormData* norms, std::uint32_t count, std::uint64_t) {
  constexpr bool kWrites = std::is_same_v<Squares, kernels::LambSquares>;
  constexpr unsigned kStates = std::is_same_v<Squares, kernels::LarsSquares> ? 0 : 2;
  if (const Status status = traffic.read(tasks, count * sizeof *tasks)) return status;
  if (const Status status = touchNorms(traffic, norms, count)) return status;
  for (const auto* task = tasks; task != tasks + count; ++task) {
    if (const Status status = readGrads<E>(traffic, *task)) return status;
    if (const Status status = readWeights<E>(traffic, *task)) return status;
    if (const Status status = touchStates<E>(traffic, *task, kStates, kWrites)) return status;
  }
  return kOk;
}

Status foldTraffic(Traffic& traffic, const NormData* norms, std::uint32_t count, std::uint64_t) {
  return touchNorms(traffic, norms, count);
}

template <class T>
Status scaleTraffic(Traffic& traffic, StepData<T>* tasks, const NormData* norms,
                    const TrustData* trusts, std::uint32_t count) {
  if (const Status status = touchNorms(traffic, norms, count)) return status;
  if (const Status status = traffic.read(trusts, count * sizeof *trusts)) return status;
  return traffic.write(tasks, count * sizeof *tasks);
}

#define GRADLINK_FAKE_STEP_OF(Formula, E)                                            \
  entry<&kernels::gradlink##Formula##E, &stepTraffic<kernels::Formula, kernels::E>>( \
      "gradlink" #Formula #E)
#define GRADLINK_FAKE_STEP(none, kernel, Formula)                                    \
  GRADLINK_FAKE_STEP_OF(Formula, Float16), GRADLINK_FAKE_STEP_OF(Formula, Bfloat16), \
      GRADLINK_FAKE_STEP_OF(Formula, Float32), GRADLINK_FAKE_STEP_OF(Formula, Float64),
#define GRADLINK_FAKE_SQUARES_OF(Squares, E)                                            \
  entry<&kernels::gradlink##Squares##E, &squaresTraffic<kernels::Squares, kernels::E>>( \
      "gradlink" #Squares #E)
#define GRADLINK_FAKE_SQUARES(Squares)                                                     \
  GRADLINK_FAKE_SQUARES_OF(Squares, Float16), GRADLINK_FAKE_SQUARES_OF(Squares, Bfloat16), \
      GRADLINK_FAKE_SQUARES_OF(Squares, Float32), GRADLINK_FAKE_SQUARES_OF(Squares, Float64)

constexpr Kernel kStepKernels[] = {
    GRADLINK_STEP_FORMULAS(GRADLINK_FAKE_STEP, ) GRADLINK_FAKE_SQUARES(LarsSquares),
    GRADLINK_FAKE_SQUARES(LambSquares),
    GRADLINK_FAKE_SQUARES(LbsgdSquares),
    entry<&kernels::gradlinkFoldLanes, &foldTraffic>("gradlinkFoldLanes"),
    entry<&kernels::gradlinkScaleRate32, &scaleTraffic<float>>("gradlinkScaleRate32"),
    entry<&kernels::gradlinkScaleRate64, &scaleTraffic<double>>("gradlinkScaleRate64"),
};

}  // namespace

const Kernel* findStepKernel(std::string_view name) { return find(kStepKernels, name); }

}  // namespace gradlink::fake
