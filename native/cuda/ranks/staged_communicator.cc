#include "cuda/ranks/staged_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "cuda/memory.h"
#include "cuda/ranks/window_memory.h"
#include "cuda/stream.h"

namespace gradlink::cuda {
namespace {

/// How many elements the rank reads and writes in a call.
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
  void collective(const Shape& shape, const Buffers& buffers, const CallOptions& call) override {
    if (shape.kind == Kind::barrier) return inner().collective(shape, buffers, call);
    if (hasOp(shape.kind)) checkReducible(shape.dtype, nameOf(shape.kind));
    Shape moved = shape;
    moved.dtype = movedAs(shape.dtype);
    const int rank = heldRanks().front();
    const Extent extent{inBlocks(shape, size(), rank) * shape.count,
                        outBlocks(shape, size(), rank) * shape.count};
    staged(buffers, extent, shape.dtype,
           [&](const Buffers& own) { inner().collective(moved, own, call); });
  }
  void neighborAllReduce(const Buffers& buffers, std::size_t count, DType dtype,
                         std::span<const Neighborhood> neighborhoods,
                         const CallOptions& call) override {
    checkReducible(dtype, "neighborAllReduce");
    staged(buffers, {count, count}, dtype, [&](const Buffers& own) {
      inner().neighborAllReduce(own, count, dtype, neighborhoods, call);
    });
  }
  void counted(CountedCall& call, const CallOptions& options) override {
    if (call.reduces()) checkReducible(call.dtype, nameOf(call.kind));
    const std::size_t element = sizeOf(call.dtype);
    CountedCall own = call;
    CountedPart& part = own.parts.front();
    own.dtype = movedAs(call.dtype);
    std::size_t length = 0;
    for (const std::size_t count : part.sent) {
      length = sendsWhole(call.kind) ? std::max(length, count) : length + count;
    }
    part.in = room(in_, length * element);
    copy(in_.data(), call.parts.front().in, length * element);
    part.out = room(out_, part.capacity * element);
    inner().counted(own, options);
    call.parts.front().counts = part.counts;
    // What lies behind the result stays as it was.
    copy(call.parts.front().out, part.out, part.got * element);
  }
  void neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                         std::span<const NeighborBlock> sources, std::span<const int> destinations,
                         const CallOptions& call) override {
    std::size_t total = 0;
    for (const NeighborBlock& source : sources) total += source.count;
    staged({{&in, 1}, {&out, 1}}, {count, total}, dtype, [&](const Buffers& own) {
      inner().neighborAllGather(own.in[0], count, movedAs(dtype), own.out[0], sources, destinations,
                                call);
    });
  }
  void pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                  double selfWeight, double pairWeight, const CallOptions& call) override {
    staged({{&in, 1}, {&out, 1}}, {count, count}, dtype, [&](const Buffers& own) {
      inner().pairGossip(own.in[0], own.out[0], count, dtype, peer, selfWeight, pairWeight, call);
    });
  }
  std::unique_ptr<Window> openWindow(const WindowSpec& spec, const CallOptions& call) override {
    return cuda::openWindow(windows_, inner(), device_, spec, call);
  }

  void send(const void* data, std::size_t count, DType dtype, int destination, int tag,
            const CallOptions& call) override {
    const std::size_t bytes = count * sizeOf(dtype);
    if (bytes >= leastDirect_ && destination != heldRanks().front()) {
      device_.makeCurrent();
      return inner().send(data, count, movedAs(dtype), destination, tag, call);
    }
    void* const own = room(in_, bytes);
    copy(own, data, bytes);
    inner().send(own, count, movedAs(dtype), destination, tag, call);
  }
  Received receive(void* data, std::size_t count, DType dtype, int source, int tag,
                   const CallOptions& call) override {
    if (count * sizeOf(dtype) >= leastDirect_) {
      const CopyIn copyIn = [this](void* to, const void* from, std::size_t n) {
        copy(to, from, n);
      };
      CallOptions direct = call;
      direct.copyIn = &copyIn;
      device_.makeCurrent();
      return inner().receive(data, count, movedAs(dtype), source, tag, direct);
    }
    void* const own = room(out_, count * sizeOf(dtype));
    const Received received = inner().receive(own, count, movedAs(dtype), source, tag, call);
    copy(data, own, received.count * sizeOf(dtype));
    return received;
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
  /// What is only moved is bytes to the host, which has no 8-bit floats.
  static DType movedAs(DType dtype) { return isFloat8(dtype) ? DType::uint8 : dtype; }
  static void checkReducible(DType dtype, const char* op) {
    if (!isFloat8(dtype)) return;
    throw unsupported(op, std::string("sums on the host have no ") + nameOf(dtype));
  }

  static void* room(PinnedMemory& memory, std::size_t bytes) {
    if (memory.bytes() < bytes) {
      memory = PinnedMemory();  // first, so that both need not fit
      memory = PinnedMemory(bytes);
    }
    return memory.data();
  }

  void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    stream_.copy(to, from, bytes);
    stream_.synchronize();
  }

  template <typename Call>
  void staged(const Buffers& buffers, Extent extent, DType dtype, const Call& call) {
    const std::size_t inBytes = extent.in * sizeOf(dtype);
    const std::size_t outBytes = extent.out * sizeOf(dtype);
    const void* const in = room(in_, inBytes);
    void* const out = room(out_, outBytes);
    copy(in_.data(), buffers.in.front(), inBytes);
    call(Buffers{{&in, 1}, {&out, 1}});
    copy(buffers.out.front(), out, outBytes);
  }

  Device& device_;
  WireWindows windows_;
  Stream stream_;
  PinnedMemory in_;
  PinnedMemory out_;
  /// Bytes of a message from which on it goes as it is.
  std::size_t leastDirect_;
};

}  // namespace

std::unique_ptr<StagedCommunicator> stageThroughHost(std::unique_ptr<Communicator> inner,
                                                     Device& device) {
  return std::make_unique<Staged>(std::move(inner), device);
}

}  // namespace gradlink::cuda
