#include "nccl/queue.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/error.h"
#include "core/kernels/identity.h"
#include "cuda/driver.h"

namespace gradlink::nccl {
namespace {

/// Makes calls in a row until one fails.
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
  Messages(const Library& library, const Comms::Member& member, const RankCall& part)
      : library_(library),
        member_(member),
        part_(part),
        type_(abi::movedAs(part.shape.dtype)),
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
  const RankCall& part_;
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

char* roomForScan(const Comms::Member& member, cuda::StreamHandle stream, std::size_t bytes) {
  std::vector<cuda::DeviceMemory>& blocks = member.scans[stream];
  if (blocks.empty() || blocks.back().bytes() < bytes) {
    blocks.emplace_back(member.device, std::bit_ceil(bytes));
  }
  return static_cast<char*>(blocks.back().data());
}

/// Elements of the identity, in memory that a capturing stream may copy from.
const cuda::PinnedMemory& someIdentity(const Comms::Member& member, const Shape& shape) {
  constexpr std::size_t kBytes = 4096;
  cuda::PinnedMemory& some = member.identities[{shape.dtype, shape.op}];
  if (some.bytes() == 0) {
    some = cuda::PinnedMemory(kBytes);
    fillIdentity(some.data(), kBytes / sizeOf(shape.dtype), shape.dtype, shape.op);
  }
  return some;
}

void queueCopy(char* to, const void* from, std::size_t bytes, cuda::StreamHandle stream) {
  cuda::check(
      cuda::Driver::get().copyAsync(cuda::addressOf(to), cuda::addressOf(from), bytes, stream),
      "a copy");
}

/// Queues `bytes` of the identity: some from the host, then doubled on the device.
void queueIdentity(char* to, std::size_t bytes, const cuda::PinnedMemory& some,
                   cuda::StreamHandle stream) {
  std::size_t done = std::min(some.bytes(), bytes);
  queueCopy(to, some.data(), done, stream);
  while (done < bytes) {
    const std::size_t more = std::min(done, bytes - done);
    queueCopy(to + done, to, more, stream);
    done += more;
  }
}

/// The library has no scans. This uses a reduce-scatter: for block r each rank brings its input if
/// it counts for rank r, else the identity. That supports every type and op and takes as long as a
/// chain of sends and sums; it needs the memory of all ranks' inputs.
abi::Result scanByReduceScatter(const Library& library, const Comms::Member& member, int size,
                                const RankCall& part) {
  const std::size_t bytes = part.shape.count * sizeOf(part.shape.dtype);
  const auto ranks = static_cast<std::size_t>(size);
  char* blocks = nullptr;
  const cuda::PinnedMemory* identity = nullptr;
  try {
    blocks = roomForScan(member, part.stream, ranks * bytes);
    identity = &someIdentity(member, part.shape);
  } catch (Error& error) {
    error.usable = false;  // the others wait for this rank's part
    throw;
  }
  // Allocating page-locked memory may have made another GPU current.
  member.device.makeCurrent();
  std::size_t before = 0;
  while (before < ranks && scannedRanks(part.shape.kind, static_cast<int>(before)) <=
                               static_cast<std::size_t>(member.rank)) {
    ++before;
  }
  if (before > 0) queueIdentity(blocks, before * bytes, *identity, part.stream);
  for (std::size_t r = before; r < ranks; ++r) {
    queueCopy(blocks + r * bytes, part.in, bytes, part.stream);
  }
  return library.reduceScatter(blocks, part.out, part.shape.count, abi::typeOf(part.shape.dtype),
                               part.op, member.handle, part.stream);
}

}  // namespace

abi::Result queuePart(const Library& library, const Comms::Member& member, int size,
                      const RankCall& part) {
  const Shape& shape = part.shape;
  if (shape.count == 0) return abi::kSuccess;
  const std::size_t count = shape.count;
  const int type = hasOp(shape.kind) ? abi::typeOf(shape.dtype) : abi::movedAs(shape.dtype);
  abi::CommHandle comm = member.handle;
  cuda::StreamHandle stream = part.stream;
  // For an unused buffer the library checks at most that it is not null.
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
    case Kind::scan:
    case Kind::exscan:
      return scanByReduceScatter(library, member, size, part);
    default:
      break;
  }
  return abi::kInvalidUsage;
}

void reserveFor(const Comms::Member& member, int size, const Shape& shape,
                cuda::StreamHandle stream) {
  if (!isScan(shape.kind) || shape.count == 0) return;
  roomForScan(member, stream, static_cast<std::size_t>(size) * shape.count * sizeOf(shape.dtype));
  someIdentity(member, shape);
}

bool hasFunction(const Library& library, Kind kind) {
  switch (kind) {
    case Kind::allToAll:
      return library.allToAll != nullptr;
    case Kind::gather:
      return library.gather != nullptr;
    case Kind::scatter:
      return library.scatter != nullptr;
    default:
      return !isScan(kind);
  }
}

}  // namespace gradlink::nccl
