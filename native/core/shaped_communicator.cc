#include "core/shaped_communicator.h"

#include <string>

#include "core/error.h"

namespace gradlink {

void ShapedCommunicator::allReduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                                   const CallOptions& o) {
  collective({Kind::allReduce, dtype, op, 0, count}, b, o);
}
void ShapedCommunicator::reduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                                int root, const CallOptions& o) {
  collective({Kind::reduce, dtype, op, root, count}, b, o);
}
void ShapedCommunicator::broadcast(const Buffers& b, std::size_t count, DType dtype, int root,
                                   const CallOptions& o) {
  collective({Kind::broadcast, dtype, ReduceOp::sum, root, count}, b, o);
}
void ShapedCommunicator::allGather(const Buffers& b, std::size_t count, DType dtype,
                                   const CallOptions& o) {
  collective({Kind::allGather, dtype, ReduceOp::sum, 0, count}, b, o);
}
void ShapedCommunicator::reduceScatter(const Buffers& b, std::size_t count, DType dtype,
                                       ReduceOp op, const CallOptions& o) {
  collective({Kind::reduceScatter, dtype, op, 0, count}, b, o);
}
void ShapedCommunicator::allToAll(const Buffers& b, std::size_t count, DType dtype,
                                  const CallOptions& o) {
  collective({Kind::allToAll, dtype, ReduceOp::sum, 0, count}, b, o);
}
void ShapedCommunicator::gather(const Buffers& b, std::size_t count, DType dtype, int root,
                                const CallOptions& o) {
  collective({Kind::gather, dtype, ReduceOp::sum, root, count}, b, o);
}
void ShapedCommunicator::scatter(const Buffers& b, std::size_t count, DType dtype, int root,
                                 const CallOptions& o) {
  collective({Kind::scatter, dtype, ReduceOp::sum, root, count}, b, o);
}

void callShaped(Communicator& to, const Shape& shape, const Buffers& b, const CallOptions& o) {
  const std::size_t count = shape.count;
  switch (shape.kind) {
    case Kind::allReduce:
      return to.allReduce(b, count, shape.dtype, shape.op, o);
    case Kind::reduce:
      return to.reduce(b, count, shape.dtype, shape.op, shape.root, o);
    case Kind::broadcast:
      return to.broadcast(b, count, shape.dtype, shape.root, o);
    case Kind::allGather:
      return to.allGather(b, count, shape.dtype, o);
    case Kind::reduceScatter:
      return to.reduceScatter(b, count, shape.dtype, shape.op, o);
    case Kind::allToAll:
      return to.allToAll(b, count, shape.dtype, o);
    case Kind::gather:
      return to.gather(b, count, shape.dtype, shape.root, o);
    case Kind::scatter:
      return to.scatter(b, count, shape.dtype, shape.root, o);
    case Kind::barrier:
      return to.barrier(o);
    case Kind::neighborAllReduce:
    case Kind::split:
      break;
  }
  throw Error(ErrorCode::invalidArgument,
              std::string(nameOf(shape.kind)) + ": a shape does not say enough of this call")
      .withOp(nameOf(shape.kind))
      .stillUsable();
}

}  // namespace gradlink
