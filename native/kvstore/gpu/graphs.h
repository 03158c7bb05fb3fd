// What one place computes in a round, as a CUDA graph: captured when it comes for the first time,
// and launched as one thing whenever the same comes again. What may differ from time to time, an
// optimizer's numbers, lies in lists on the device and is sent anew where it has changed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/graph.h"
#include "cuda/task_ring.h"
#include "kvstore/gpu/collectives.h"
#include "kvstore/gpu/places.h"
#include "kvstore/gpu/step.h"

namespace gradlink {

/// All that decides which kernels are launched, with what: two rounds of one shape differ in the
/// contents of their lists alone.
using GpuRoundShape = std::vector<std::uint64_t>;
GpuRoundShape shapeOf(const GpuSums& sums, const GpuSteps& steps);

/// Of one place, which outlives it. Used by the engine's thread alone.
class GpuGraphs {
 public:
  explicit GpuGraphs(GpuPlace& place) : place_(place) {}
  GpuGraphs(const GpuGraphs&) = delete;
  GpuGraphs& operator=(const GpuGraphs&) = delete;

  /// Queues what `compute` queues on the place's stream: nothing but launches with lists.
  void launch(GpuRoundShape shape, const std::function<void()>& compute);

 private:
  struct Known {
    GpuRoundShape shape;
    std::unique_ptr<cuda::KeptLists> lists;
    std::unique_ptr<cuda::Graph> graph;
  };

  void capture(Known& known, const std::function<void()>& compute);
  void write(Known& known, bool launches, const std::function<void()>& compute);

  GpuPlace& place_;
  /// The last used in front.
  std::deque<Known> known_;
};

}  // namespace gradlink
