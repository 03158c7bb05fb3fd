#include "cuda/ranks/staged_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/window.h"
#include "cuda/memory.h"
#include "cuda/ranks/window_memory.h"
#include "cuda/stream.h"

namespace gradlink::cuda {
namespace {

/// Elements that the rank reads and writes in a call.
struct Extent {
  std::size_t in;
  std::size_t out;
};

class Staged final : public StagedCommunicator {
 public:
  ~Staged() override { windows_.close(); }
  Staged(std::unique_ptr<Communicator> inner, Device& device)
      : StagedCommunicator(std::move(inner)),
        device_(device),
        stream_(device),
        leastDirect_(this->inner().leastGpuMessage()) {}

  const Device& device() const override { return device_; }
  void run(const Call& call) override {
    const Shape& shape = call.shape;
    if (isMessage(shape.kind)) return transfer(call);
    if (!call.scales.empty()) {
      throw unsupported(call.op(), "scale is for NCCL; multiply the data before the call");
    }
    if (hasOp(shape.kind) || shape.kind == Kind::neighborAllReduce) {
      checkReducible(shape.dtype, call.op());
    }
    Call moved = call;
    moved.shape.dtype = movedAs(shape.dtype);
    if (isCounted(shape.kind)) return count(call, moved);
    if (shape.kind == Kind::neighborAllGather) return gather(moved, shape.dtype);
    if (shape.kind == Kind::pairGossip) return average(moved, shape.dtype);
    const int rank = heldRanks().front();
    const Extent extent{inBlocks(shape, size(), rank) * shape.count,
                        outBlocks(shape, size(), rank) * shape.count};
    if (shape.kind == Kind::barrier) return inner().run(call);
    staged(call.buffers, extent, shape.dtype, [&](const Buffers& own) {
      moved.buffers = own;
      inner().run(moved);
    });
  }
  std::unique_ptr<Window> openWindow(const WindowSpec& spec, const CallOptions& call) override {
    return cuda::openWindow(windows_, inner(), device_, spec, call);
  }

  void* allocShared(std::size_t) override {
    throw unsupported("allocShared", "it gives memory of the host, and this rank's arrays are on " +
                                         device_.label());
  }
  void freeShared(void*) override {}
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& call) override {
    auto part = inner().split(color, key, call);
    if (!part) return nullptr;
    return std::make_unique<Staged>(std::move(part), device_);
  }
  void close() override {
    windows_.close();
    inner().close();
  }

 private:
  void count(const Call& call, Call& moved) {
    const std::size_t element = sizeOf(call.shape.dtype);
    Counted own = *call.counted;
    CountedPart& given = call.counted->parts.front();
    CountedPart& part = own.parts.front();
    std::size_t length = 0;
    for (const std::size_t count : part.sent) {
      length = sendsWhole(call.shape.kind) ? std::max(length, count) : length + count;
    }
    part.in = room(in_, length * element);
    copy(in_.data(), given.in, length * element);
    part.out = room(out_, part.capacity * element);
    moved.counted = &own;
    inner().run(moved);
    given.counts = part.counts;
    // The memory after the result stays unchanged.
    copy(given.out, part.out, part.got * element);
  }
  void gather(Call& moved, DType dtype) {
    const NeighborGather& given = moved.gathers.front();
    NeighborGather own = given;
    std::size_t total = 0;
    for (const NeighborBlock& source : own.sources) total += source.count;
    staged({{&given.in, 1}, {&given.out, 1}}, {own.count, total}, dtype, [&](const Buffers& at) {
      own.in = at.in[0];
      own.out = at.out[0];
      moved.gathers = {&own, 1};
      inner().run(moved);
    });
  }
  void average(Call& moved, DType dtype) {
    const Gossip& given = moved.pairs.front();
    const Extent extent{given.count, given.count};
    Gossip own = given;
    staged({{&given.in, 1}, {&given.out, 1}}, extent, dtype, [&](const Buffers& at) {
      own.in = at.in[0];
      own.out = at.out[0];
      moved.pairs = {&own, 1};
      inner().run(moved);
    });
  }
  /// Long messages are passed directly if the inner communicator accepts device memory.
  void transfer(const Call& call) {
    Message& given = call.messages.front();
    Message own = given;
    own.dtype = movedAs(given.dtype);
    Call moved = call;
    moved.shape.dtype = own.dtype;
    moved.messages = {&own, 1};
    const std::size_t bytes = given.count * sizeOf(given.dtype);
    const bool direct = bytes >= leastDirect_ && (!own.sends || own.peer != heldRanks().front());
    const CopyIn copyIn = [this](void* to, const void* from, std::size_t n) { copy(to, from, n); };
    if (direct) {
      if (!own.sends) moved.options.copyIn = &copyIn;
      device_.makeCurrent();
    } else {
      own.data = room(own.sends ? in_ : out_, bytes);
      if (own.sends) copy(own.data, given.data, bytes);
    }
    inner().run(moved);
    given.got = own.got;
    if (!direct && !own.sends) copy(given.data, own.data, own.got.count * sizeOf(given.dtype));
  }

  /// The host has no 8-bit floats, but can move their bytes.
  static DType movedAs(DType dtype) { return isFloat8(dtype) ? DType::uint8 : dtype; }
  static void checkReducible(DType dtype, const char* op) {
    if (!isFloat8(dtype)) return;
    throw unsupported(op, std::string("the host cannot sum ") + nameOf(dtype));
  }

  static void* room(PinnedMemory& memory, std::size_t bytes) {
    if (memory.bytes() < bytes) {
      memory = PinnedMemory();  // freed first, so that both need not fit
      memory = PinnedMemory(bytes);
    }
    return memory.data();
  }

  void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    stream_.copy(to, from, bytes);
    stream_.synchronize();
  }

  template <typename Body>
  void staged(const Buffers& buffers, Extent extent, DType dtype, const Body& body) {
    const std::size_t inBytes = extent.in * sizeOf(dtype);
    const std::size_t outBytes = extent.out * sizeOf(dtype);
    const void* const in = room(in_, inBytes);
    void* const out = room(out_, outBytes);
    copy(in_.data(), buffers.in.front(), inBytes);
    body(Buffers{{&in, 1}, {&out, 1}});
    copy(buffers.out.front(), out, outBytes);
  }

  Device& device_;
  WireWindows windows_;
  Stream stream_;
  PinnedMemory in_;
  PinnedMemory out_;
  std::size_t leastDirect_;
};

}  // namespace

std::unique_ptr<StagedCommunicator> stageThroughHost(std::unique_ptr<Communicator> inner,
                                                     Device& device) {
  return std::make_unique<Staged>(std::move(inner), device);
}

}  // namespace gradlink::cuda
