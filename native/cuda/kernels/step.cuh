// One pass over an array's gradients, weights and states: sum, step, and copies of the new weights.
#pragma once

#include "core/kernels/step_formulas.h"
#include "cuda/kernels/floats.cuh"

namespace gradlink::kernels {

/// A half type's weights may be masters in float32.
GRADLINK_DEVICE DType typeOfWeights(const StepData& task, DType type) {
  return task.master != nullptr ? DType::float32 : type;
}
GRADLINK_DEVICE const void* weightsOf(const StepData& task) {
  return task.master != nullptr ? task.master : task.weight;
}

template <unsigned apart = 1>
GRADLINK_DEVICE void sumOfGrads(const StepData& task, DType type, unsigned many, std::uint64_t at,
                                float* sum) {
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t s = 0; s < task.grads; ++s) {
    Elements<apart> loaded{};
    float grad[kTaken];
    loaded.load(type, many, task.pointers[s], at);
    loaded.unpack(type, grad);
    GRADLINK_UNROLL
    for (unsigned i = 0; i < kTaken; ++i) sum[i] = s == 0 ? grad[i] : sum[i] + grad[i];
  }
  if (task.grads == 1) return;
  GRADLINK_UNROLL
  for (unsigned i = 0; i < kTaken; ++i) sum[i] = roundedTo(type, sum[i]);
}

template <class Formula>
GRADLINK_DEVICE void stepElements(const StepData& task, DType type, unsigned many,
                                  std::uint64_t at) {
  constexpr unsigned kStates = Formula::kStates;
  // lamb's second half reads the moments instead of the gradient.
  constexpr bool kMoments = kHasMoments<Formula>;
  const DType weightType = typeOfWeights(task, type);
  Elements<> loaded[kStates + 1] = {};
  Elements<>& weight = loaded[kStates];
  weight.load(weightType, many, weightsOf(task), at);
  GRADLINK_UNROLL
  for (unsigned s = 0; s < kStates; ++s) loaded[s].load(DType::float32, many, task.states[s], at);
  float grads[kTaken] = {};
  if constexpr (!kMoments) sumOfGrads(task, type, many, at, grads);
  float weights[kTaken];
  weight.unpack(weightType, weights);
  GRADLINK_UNROLL
  for (unsigned i = 0; i < kTaken; ++i) {
    float states[kStates + 1];
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) states[s] = floatOf(loaded[s].words[i]);
    Formula::step(weights[i], grads[i], states, task.scalars);
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) loaded[s].words[i] = bitsOf(states[s]);
  }
  if constexpr (!kMoments) {
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) {
      loaded[s].store(DType::float32, many, task.states[s], at);
    }
  }
  if (task.master != nullptr) {
    weight.pack(DType::float32, weights);
    weight.store(DType::float32, many, task.master, at);
  }
  weight.pack(type, weights);
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t t = 0; t <= task.targets; ++t) {
    void* const to = t < task.targets ? task.pointers[task.grads + t] : task.weight;
    weight.store(type, many, to, at);
  }
}

template <class Formula>
GRADLINK_DEVICE void stepTile(const StepData* tasks, std::uint32_t count, DType type) {
  const StepData& task = tasks[taskAt(tasks, count, &StepData::firstTile, blockIdx.x)];
  forPartsOfTile(
      blockIdx.x - task.firstTile, kStepTile, task.count, task.aligned != 0,
      [&](unsigned many, std::uint64_t at) { stepElements<Formula>(task, type, many, at); });
}

#define GRADLINK_STEP(none, kernel, Formula)                                                  \
  GRADLINK_KERNEL gradlink##Formula(const StepData* tasks, std::uint32_t count, DType type) { \
    stepTile<Formula>(tasks, count, type);                                                    \
  }
GRADLINK_STEP_FORMULAS(GRADLINK_STEP, )
#undef GRADLINK_STEP

}  // namespace gradlink::kernels
