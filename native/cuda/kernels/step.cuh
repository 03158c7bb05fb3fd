// One pass over an array's gradients, weights and states: sum, step, and copies of the new weights.
#pragma once

#include "core/kernels/step_formulas.h"
#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// `width` elements: 1, or a multiple of 16 bytes (eight float32 states go with eight halves).
template <class E, unsigned width>
GRADLINK_DEVICE void load(const typename E::Memory* from, typename E::Wide* out) {
  if constexpr (width == 1) {
    out[0] = E::widen(*from);
  } else {
    GRADLINK_UNROLL
    for (unsigned v = 0; v < width / E::kWides; ++v) {
      const Vector whole = reinterpret_cast<const Vector*>(from)[v];
      E::unpack(whole, out + v * E::kWides);
    }
  }
}
template <class E, unsigned width>
GRADLINK_DEVICE void store(typename E::Memory* to, const typename E::Wide* in) {
  if constexpr (width == 1) {
    *to = E::narrow(in[0]);
  } else {
    GRADLINK_UNROLL
    for (unsigned v = 0; v < width / E::kWides; ++v) {
      storeVector(reinterpret_cast<Vector*>(to) + v, E::pack(in + v * E::kWides));
    }
  }
}

/// The type of states and masters: the precision of the step.
template <class T>
struct ElementOf;
template <>
struct ElementOf<float> {
  using Type = Float32;
};
template <>
struct ElementOf<double> {
  using Type = Float64;
};
template <class E>
using Full = typename ElementOf<typename E::Wide>::Type;

/// The sum of the gradients, rounded to the element type.
template <class E, unsigned width>
GRADLINK_DEVICE void sumOfGrads(const StepData<typename E::Wide>& task, std::uint64_t at,
                                typename E::Wide* sum) {
  using Memory = typename E::Memory;
  load<E, width>(static_cast<const Memory*>(task.pointers[0]) + at, sum);
  if (task.grads == 1) return;
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t s = 1; s < task.grads; ++s) {
    typename E::Wide more[width];
    load<E, width>(static_cast<const Memory*>(task.pointers[s]) + at, more);
    GRADLINK_UNROLL
    for (unsigned i = 0; i < width; ++i) sum[i] = sum[i] + more[i];
  }
  GRADLINK_UNROLL
  for (unsigned i = 0; i < width; ++i) sum[i] = E::widen(E::narrow(sum[i]));
}

template <class E, unsigned width>
GRADLINK_DEVICE void loadWeights(const StepData<typename E::Wide>& task, std::uint64_t at,
                                 typename E::Wide* weights) {
  using T = typename E::Wide;
  if (task.master != nullptr) {
    load<Full<E>, width>(reinterpret_cast<const T*>(task.master) + at, weights);
  } else {
    load<E, width>(static_cast<const typename E::Memory*>(task.weight) + at, weights);
  }
}

template <class Formula, class E, unsigned width>
GRADLINK_DEVICE void stepElements(const StepData<typename E::Wide>& task, std::uint64_t at) {
  using T = typename E::Wide;
  constexpr unsigned kStates = Formula::kStates;
  // lamb's second half reads the moments instead of the gradient.
  constexpr bool kMoments = kHasMoments<Formula>;
  T weights[width];
  T states[kStates + 1][width];
  T grads[width] = {};
  loadWeights<E, width>(task, at, weights);
  GRADLINK_UNROLL
  for (unsigned s = 0; s < kStates; ++s) load<Full<E>, width>(task.states[s] + at, states[s]);
  if constexpr (!kMoments) sumOfGrads<E, width>(task, at, grads);
  GRADLINK_UNROLL
  for (unsigned i = 0; i < width; ++i) {
    T mine[kStates + 1];
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) mine[s] = states[s][i];
    Formula::step(weights[i], grads[i], mine, task.scalars);
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) states[s][i] = mine[s];
  }
  if constexpr (!kMoments) {
    GRADLINK_UNROLL
    for (unsigned s = 0; s < kStates; ++s) store<Full<E>, width>(task.states[s] + at, states[s]);
  }
  if (task.master != nullptr) {
    store<Full<E>, width>(reinterpret_cast<T*>(task.master) + at, weights);
  }
  store<E, width>(static_cast<typename E::Memory*>(task.weight) + at, weights);
  GRADLINK_KEEP_ROLLED
  for (std::uint32_t t = 0; t < task.targets; ++t) {
    auto* to = static_cast<typename E::Memory*>(task.pointers[task.grads + t]);
    store<E, width>(to + at, weights);
  }
}

template <class Formula, class E>
GRADLINK_DEVICE void stepTile(const StepData<typename E::Wide>* tasks, std::uint32_t count) {
  using Data = StepData<typename E::Wide>;
  constexpr unsigned kWidth = E::kWides;
  const Data& task = tasks[taskAt(tasks, count, &Data::firstTile, blockIdx.x)];
  const std::uint64_t begin = (blockIdx.x - task.firstTile) * kStepTile;
  const std::uint64_t rest = task.count - begin;
  const auto elements = static_cast<unsigned>(rest < kStepTile ? rest : kStepTile);
  const unsigned vectors = task.aligned != 0 ? elements / kWidth : 0;
  GRADLINK_KEEP_ROLLED
  for (unsigned i = threadIdx.x; i < vectors; i += kThreads) {
    stepElements<Formula, E, kWidth>(task, begin + i * kWidth);
  }
  GRADLINK_KEEP_ROLLED
  for (unsigned i = vectors * kWidth + threadIdx.x; i < elements; i += kThreads) {
    stepElements<Formula, E, 1>(task, begin + i);
  }
}

#define GRADLINK_STEP_KERNEL(name, Formula, E)                                \
  GRADLINK_KERNEL name(const StepData<E::Wide>* tasks, std::uint32_t count) { \
    stepTile<Formula, E>(tasks, count);                                       \
  }
#define GRADLINK_STEP(none, kernel, Formula)                           \
  GRADLINK_STEP_KERNEL(gradlink##Formula##Float16, Formula, Float16)   \
  GRADLINK_STEP_KERNEL(gradlink##Formula##Bfloat16, Formula, Bfloat16) \
  GRADLINK_STEP_KERNEL(gradlink##Formula##Float32, Formula, Float32)   \
  GRADLINK_STEP_KERNEL(gradlink##Formula##Float64, Formula, Float64)
GRADLINK_STEP_FORMULAS(GRADLINK_STEP, )
#undef GRADLINK_STEP
#undef GRADLINK_STEP_KERNEL

}  // namespace gradlink::kernels
