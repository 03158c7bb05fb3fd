// A CUDA graph captured from a stream, to be launched repeatedly.
#pragma once

#include "cuda/stream.h"

namespace gradlink::cuda {

class Graph {
 public:
  /// Begins the capture. Throws unsupported if the driver has no graphs (before CUDA 11.4).
  explicit Graph(Stream&);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Ends the capture; nothing of it has run.
  void finish();
  void launch();

 private:
  Stream& stream_;
  bool capturing_ = false;
  GraphExecHandle graph_ = nullptr;
};

}  // namespace gradlink::cuda
