// Optimizers on a GPU: their states, and the host's numbers of an update as the kernels take them.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/kernels/optimizer_step.h"
#include "cuda/step.h"
#include "kvstore/gpu/key.h"
#include "kvstore/gpu/places.h"

namespace gradlink {

/// Which launch a step belongs to: tasks of one kind share it.
struct GpuStepKind {
  DType dtype;
  StepKernel kernel;
  TrustRatio ratio;
  bool operator<(const GpuStepKind& other) const {
    return std::tie(dtype, kernel, ratio) < std::tie(other.dtype, other.kernel, other.ratio);
  }
};
/// By kind, for one launch each.
using GpuSteps = std::map<GpuStepKind, std::vector<cuda::StepTask>>;
GpuStepKind stepKindOf(const GpuKey&, const Optimizer&);

/// Whether the key's values go to the host for a step, whose state stays there.
bool stepsOnHost(const GpuKey&, const Optimizer&);

/// Makes the state's arrays on the owner, where they were not made yet. Reads the weights back
/// where an array starts as their copy.
void makeState(GpuKey&, KeyState&, GpuPlace& owner);

/// The update of a unit's key without its gradients and targets.
cuda::StepTask stepOf(GpuKey&, const GpuItem&);

/// A copy of the state with its data.
std::unique_ptr<OptimizerState> downloadState(const KeyState&, GpuPlace& owner);
/// Moves the state's data to the owner.
void uploadState(KeyState&, GpuPlace& owner);

}  // namespace gradlink
