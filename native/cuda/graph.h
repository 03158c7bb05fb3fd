// A CUDA graph of what was queued on a stream, to be launched again without queueing it anew.
#pragma once

#include "cuda/stream.h"

namespace gradlink::cuda {

class Graph {
 public:
  /// Begins to capture. Throws unsupported where the driver has no graphs (before CUDA 11.4).
  explicit Graph(Stream&);
  /// Ends a capture that `finish` has not ended.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// What was queued since is the graph; nothing of it has run.
  void finish();
  void launch();

 private:
  Stream& stream_;
  bool capturing_ = false;
  GraphExecHandle graph_ = nullptr;
};

}  // namespace gradlink::cuda
