#include "kvstore/gpu/step.h"

#include <utility>
#include <vector>

#include "kvstore/optimizer/math.h"

namespace gradlink {

GpuStepKind stepKindOf(const GpuKey& key, const Optimizer& optimizer) {
  const OptimizerMath& math = optimizer.math();
  return {key.dtype, math.kernel, math.ratio};
}

bool stepsOnHost(const GpuKey& key, const Optimizer& optimizer) {
  return !cuda::runsOnGpus(key.dtype, optimizer.math().kernel);
}

void makeState(GpuKey& key, KeyState& state, GpuPlace& owner) {
  if (state.made) return;
  const Optimizer& optimizer = *state.optimizer;
  // Of no elements: names and types alone.
  std::unique_ptr<OptimizerState> form = optimizer.createState(key.name, nullptr, 0, key.dtype);
  const bool copiesWeights = optimizer.copiesWeights(key.dtype);
  if (copiesWeights) {
    std::vector<std::byte> weights(key.bytes());
    owner.stream.copy(weights.data(), key.value.data(), key.bytes());
    owner.stream.synchronize();
    state.state->arrays =
        std::move(optimizer.createState(key.name, weights.data(), key.count, key.dtype)->arrays);
    uploadState(state, owner);
  } else {
    std::vector<cuda::DeviceMemory> arrays;
    for (StateArray& array : form->arrays) {
      array.count = key.count;
      arrays.emplace_back(owner.device, key.count * sizeOf(array.dtype));
      owner.stream.zero(arrays.back().data(), arrays.back().bytes());
    }
    state.state->arrays = std::move(form->arrays);
    state.arrays = std::move(arrays);
  }
  state.made = true;
}

cuda::StepTask stepOf(GpuKey& key, const GpuItem& item) {
  const OptimizerMath& math = item.state->optimizer->math();
  const KeyState& state = *item.state;
  cuda::StepTask task;
  task.weight = key.value.data();
  task.count = key.count;
  for (std::size_t i = 0; i < math.stateNames.size(); ++i) {
    task.states[i] = state.arrays[i].data();
  }
  if (state.arrays.size() > math.stateNames.size()) {
    task.master = static_cast<float*>(state.arrays.back().data());
  }
  task.scalars = math.scalars(item.numbers);
  task.trust.learningRate = item.numbers.learningRate;
  task.trust.wd = item.numbers.wd;
  task.trust.rescaleGrad = item.numbers.rescaleGrad;
  task.trust.layerwise = item.numbers.layerwise;
  task.trust.eta = math.value("eta");
  task.trust.epsilon = math.value("epsilon");
  if (math.ratio == TrustRatio::lamb) {
    task.trust.lowerBound = math.value("lowerBound");
    task.trust.upperBound = math.value("upperBound");
  }
  return task;
}

std::unique_ptr<OptimizerState> downloadState(const KeyState& state, GpuPlace& owner) {
  const OptimizerState& from = *state.state;
  auto copy = std::make_unique<OptimizerState>(
      OptimizerState{from.key, from.dtype, from.count, from.updates, {}, from.lastLearningRate});
  for (std::size_t i = 0; i < state.arrays.size(); ++i) {
    const StateArray& array = from.arrays[i];
    AlignedBuffer data(state.arrays[i].bytes());
    owner.stream.copy(data.data(), state.arrays[i].data(), data.size());
    copy->arrays.push_back({array.name, array.dtype, array.count, std::move(data)});
  }
  owner.stream.synchronize();
  return copy;
}

void uploadState(KeyState& state, GpuPlace& owner) {
  std::vector<cuda::DeviceMemory> arrays;
  for (StateArray& array : state.state->arrays) {
    arrays.emplace_back(owner.device, array.data.size());
    owner.stream.copy(arrays.back().data(), array.data.data(), array.data.size());
  }
  owner.stream.synchronize();
  state.arrays = std::move(arrays);
  for (StateArray& array : state.state->arrays) array.data = AlignedBuffer();
}

}  // namespace gradlink
