// Communicators that take every collective as a Shape: the contract's calls become one.
#pragma once

#include "core/call.h"
#include "core/communicator.h"

namespace gradlink {

class ShapedCommunicator : public Communicator {
 public:
  void allReduce(const Buffers&, std::size_t count, DType, ReduceOp, const CallOptions& = {}) final;
  void reduce(const Buffers&, std::size_t count, DType, ReduceOp, int root,
              const CallOptions& = {}) final;
  void broadcast(const Buffers&, std::size_t count, DType, int root, const CallOptions& = {}) final;
  void allGather(const Buffers&, std::size_t count, DType, const CallOptions& = {}) final;
  void reduceScatter(const Buffers&, std::size_t count, DType, ReduceOp,
                     const CallOptions& = {}) final;
  void allToAll(const Buffers&, std::size_t count, DType, const CallOptions& = {}) final;
  void gather(const Buffers&, std::size_t count, DType, int root, const CallOptions& = {}) final;
  void scatter(const Buffers&, std::size_t count, DType, int root, const CallOptions& = {}) final;

 protected:
  /// One of the calls above; the shape is not checked yet.
  virtual void collective(const Shape&, const Buffers&, const CallOptions&) = 0;
};

/// The way back: makes the call that a shape describes. Not neighborAllReduce or split, which need
/// more than a shape says.
void callShaped(Communicator&, const Shape&, const Buffers&, const CallOptions&);

}  // namespace gradlink
