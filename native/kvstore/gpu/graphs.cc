#include "kvstore/gpu/graphs.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace gradlink {
namespace {

/// A training loop has a few rounds that come again: its pushes and pulls together or apart, cut
/// where a round is full. What is pushed from other arrays each time is not to fill the GPU.
constexpr std::size_t kMostGraphs = 32;

void add(GpuRoundShape& shape, const void* memory) { shape.push_back(cuda::addressOf(memory)); }

template <class Pointer>
void add(GpuRoundShape& shape, const std::pmr::vector<Pointer>& arrays) {
  shape.push_back(arrays.size());
  for (const void* const array : arrays) add(shape, array);
}

template <class T>
void add(GpuRoundShape& shape, T value) requires std::is_enum_v<T> || std::is_integral_v<T> {
  shape.push_back(static_cast<std::uint64_t>(value));
}

}  // namespace

GpuRoundShape shapeOf(const GpuSums& sums, const GpuSteps& steps) {
  GpuRoundShape shape;
  for (const auto& [dtype, tasks] : sums) {
    add(shape, dtype);
    add(shape, tasks.size());
    for (const cuda::SumTask& task : tasks) {
      add(shape, task.sources);
      add(shape, task.targets);
      add(shape, task.count);
    }
  }
  // Of which there is no dtype.
  add(shape, ~std::uint64_t{0});
  for (const auto& [kind, tasks] : steps) {
    add(shape, kind.dtype);
    add(shape, kind.kernel);
    add(shape, kind.ratio);
    add(shape, tasks.size());
    for (const cuda::StepTask& task : tasks) {
      add(shape, task.grads);
      add(shape, task.targets);
      add(shape, task.weight);
      for (const void* const state : task.states) add(shape, state);
      add(shape, static_cast<const void*>(task.master));
      add(shape, task.count);
    }
  }
  return shape;
}

void GpuGraphs::launch(GpuRoundShape shape, const std::function<void()>& compute) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& known) { return known.shape == shape; });
  if (found != known_.end()) {
    std::rotate(known_.begin(), found, found + 1);
    write(known_.front(), false, compute);
  } else {
    Known known{std::move(shape), std::make_unique<cuda::KeptLists>(place_.device), nullptr};
    capture(known, compute);
    if (known_.size() == kMostGraphs) {
      // The device may still be at it.
      place_.stream.synchronize();
      known_.pop_back();
    }
    known_.push_front(std::move(known));
  }
  place_.ring.impl().bringUpToDate(*known_.front().lists);
  known_.front().graph->launch();
}

/// First the lists alone, which takes memory, and no memory may be taken during a capture; then the
/// launches, which find them there.
void GpuGraphs::capture(Known& known, const std::function<void()>& compute) {
  write(known, false, compute);
  auto graph = std::make_unique<cuda::Graph>(place_.stream);
  write(known, true, compute);
  graph->finish();
  known.graph = std::move(graph);
}

void GpuGraphs::write(Known& known, bool launches, const std::function<void()>& compute) {
  struct Keeping {
    explicit Keeping(cuda::TaskRing& ring, cuda::KeptLists& lists) : ring(ring) {
      ring.impl().keep(&lists);
    }
    ~Keeping() { ring.impl().keep(nullptr); }
    Keeping(const Keeping&) = delete;
    Keeping& operator=(const Keeping&) = delete;
    cuda::TaskRing& ring;
  };
  known.lists->begin(launches);
  const Keeping keeping(place_.ring, *known.lists);
  compute();
}

}  // namespace gradlink
