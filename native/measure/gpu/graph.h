// A CUDA graph of what was queued on a stream, to be launched again without queueing it anew.
#pragma once

#include "cuda/stream.h"

namespace gradlink::measure {

class GpuGraph {
 public:
  /// Begins to capture. Throws unsupported where the driver has no graphs (before CUDA 11.4).
  explicit GpuGraph(cuda::Stream&);
  /// Ends a capture that `finish` has not ended.
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// What was queued since is the graph; nothing of it has run.
  void finish();
  void launch();

 private:
  cuda::Stream& stream_;
  bool capturing_ = false;
  cuda::GraphExecHandle graph_ = nullptr;
};

}  // namespace gradlink::measure
