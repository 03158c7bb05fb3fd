#include "nccl/queue.h"

namespace gradlink::nccl {
namespace {

/// Calls in a row until one fails.
class Sequence {
 public:
  template <class Call>
  void then(const Call& call) {
    if (!isFailure(result_)) result_ = call();
  }
  abi::Result result() const { return result_; }

 private:
  abi::Result result_ = abi::kSuccess;
};

/// The sends and receives of one rank's part; blocks of `count` elements.
class Messages {
 public:
  Messages(const Library& library, const Comms::Member& member, const Part& part)
      : library_(library),
        member_(member),
        part_(part),
        type_(abi::typeOf(part.shape.dtype)),
        bytes_(part.shape.count * sizeOf(part.shape.dtype)) {}

  void send(std::size_t block, int to) {
    const void* from = static_cast<const char*>(part_.in) + block * bytes_;
    all_.then([&] {
      return library_.send(from, part_.shape.count, type_, to, member_.handle, part_.stream);
    });
  }
  void receive(std::size_t block, int from) {
    void* to = static_cast<char*>(part_.out) + block * bytes_;
    all_.then([&] {
      return library_.recv(to, part_.shape.count, type_, from, member_.handle, part_.stream);
    });
  }
  abi::Result result() const { return all_.result(); }

 private:
  const Library& library_;
  const Comms::Member& member_;
  const Part& part_;
  int type_;
  std::size_t bytes_;
  Sequence all_;
};

abi::Result allToAllByMessages(Messages messages, int size) {
  for (int r = 0; r < size; ++r) {
    messages.send(static_cast<std::size_t>(r), r);
    messages.receive(static_cast<std::size_t>(r), r);
  }
  return messages.result();
}

abi::Result gatherByMessages(Messages messages, int size, int rank, int root) {
  messages.send(0, root);
  for (int r = 0; r < size && rank == root; ++r) {
    messages.receive(static_cast<std::size_t>(r), r);
  }
  return messages.result();
}

abi::Result scatterByMessages(Messages messages, int size, int rank, int root) {
  for (int r = 0; r < size && rank == root; ++r) messages.send(static_cast<std::size_t>(r), r);
  messages.receive(0, root);
  return messages.result();
}

}  // namespace

abi::Result queuePart(const Library& library, const Comms::Member& member, int size,
                      const Part& part) {
  const Shape& shape = part.shape;
  if (shape.count == 0) return abi::kSuccess;
  const std::size_t count = shape.count;
  const int type = abi::typeOf(shape.dtype);
  abi::CommHandle comm = member.handle;
  cuda::StreamHandle stream = part.stream;
  // Where a rank has no use for one of the two, the library looks at neither its address nor its
  // bytes; but it may look whether it is null.
  const void* in = part.in != nullptr ? part.in : part.out;
  void* out = part.out != nullptr ? part.out : const_cast<void*>(part.in);
  switch (shape.kind) {
    case Kind::allReduce:
      return library.allReduce(in, out, count, type, part.op, comm, stream);
    case Kind::reduce:
      return library.reduce(in, out, count, type, part.op, shape.root, comm, stream);
    case Kind::broadcast:
      return library.broadcast(in, out, count, type, shape.root, comm, stream);
    case Kind::allGather:
      return library.allGather(in, out, count, type, comm, stream);
    case Kind::reduceScatter:
      return library.reduceScatter(in, out, count, type, part.op, comm, stream);
    case Kind::allToAll:
      if (library.allToAll != nullptr) return library.allToAll(in, out, count, type, comm, stream);
      return allToAllByMessages({library, member, part}, size);
    case Kind::gather:
      if (library.gather != nullptr) {
        return library.gather(in, out, count, type, shape.root, comm, stream);
      }
      return gatherByMessages({library, member, part}, size, member.rank, shape.root);
    case Kind::scatter:
      if (library.scatter != nullptr) {
        return library.scatter(in, out, count, type, shape.root, comm, stream);
      }
      return scatterByMessages({library, member, part}, size, member.rank, shape.root);
    case Kind::barrier:
    case Kind::neighborAllReduce:
    case Kind::split:
      break;
  }
  return abi::kInvalidUsage;
}

bool madeOfMessages(const Library& library, Kind kind) {
  return (kind == Kind::allToAll && library.allToAll == nullptr) ||
         (kind == Kind::gather && library.gather == nullptr) ||
         (kind == Kind::scatter && library.scatter == nullptr);
}

}  // namespace gradlink::nccl
