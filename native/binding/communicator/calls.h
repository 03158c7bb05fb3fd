// A collective call as it comes from JavaScript: read and checked on the JavaScript thread, run on
// any.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "binding/buffer_view.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "core/communicator.h"
#include "core/fusion.h"
#include "core/neighbors.h"
#include "nccl/nccl.h"

namespace gradlink::binding {

/// One pointer for each held rank, without allocation for few.
template <typename Pointer>
class RankPointers {
 public:
  void resize(std::size_t size) {
    size_ = size;
    if (size > few_.size()) many_.resize(size);
  }
  Pointer& operator[](std::size_t i) { return data()[i]; }
  std::span<const Pointer> span() const {
    return {size_ > few_.size() ? many_.data() : few_.data(), size_};
  }

 private:
  Pointer* data() { return size_ > few_.size() ? many_.data() : few_.data(); }
  std::array<Pointer, 8> few_{};
  std::vector<Pointer> many_;
  std::size_t size_ = 0;
};

/// What buffers are checked against: the communicator, and the GPU of each held rank (none: they
/// are in host memory).
struct Side {
  const Communicator& communicator;
  std::span<const int> gpus;

  int deviceOf(std::size_t held) const { return gpus.empty() ? kHost : gpus[held]; }
};

/// What run and runSync do.
class CollectiveCall {
 public:
  /// Reads (call, input, output, count, root, timeoutMs) and scales: one for each held rank, and
  /// where ranks have host memory one more for the result. Checks lengths and devices; appends the
  /// arrays to `kept` unless it is null.
  CollectiveCall(const Napi::CallbackInfo&, const Napi::Value& scales, const Side&, Kept* kept);
  void operator()(Communicator&) const;
  /// Nothing where it is no plain sum.
  std::optional<FusedCall> fused() const;

 private:
  Shape shape_;
  CallOptions options_;
  RankPointers<const void*> in_;
  RankPointers<void*> out_;
  /// On ranks with host memory: inputs are multiplied in memory of the call's own.
  void scaled(Communicator&) const;

  /// One for each held rank, or none.
  std::vector<double> scales_;
  /// What results are multiplied by, where ranks have host memory.
  std::optional<double> postscale_;
};

/// What neighborAllReduce and its twin do.
class NeighborCall {
 public:
  /// Reads (dtype, input, output, count, neighborhoods, timeoutMs).
  NeighborCall(const Napi::CallbackInfo&, const Side&, Kept* kept);
  void operator()(Communicator&) const;
  std::optional<FusedCall> fused() const;

 private:
  DType dtype_;
  std::size_t count_;
  CallOptions options_;
  std::vector<Neighborhood> neighborhoods_;
  RankPointers<const void*> in_;
  RankPointers<void*> out_;
};

/// What neighborAllGather and its twin do.
class NeighborGatherCall {
 public:
  /// Reads (dtype, data, out, sources, counts, destinations, timeoutMs).
  NeighborGatherCall(const Napi::CallbackInfo&, const Side&, Kept* kept);
  void operator()(Communicator&) const;

 private:
  DType dtype_;
  nccl::HeldGather one_;
  CallOptions options_;
};

/// What pairGossip and its twin do.
class GossipCall {
 public:
  /// Reads (dtype, data, out, peer, selfWeight, pairWeight, timeoutMs).
  GossipCall(const Napi::CallbackInfo&, const Side&, Kept* kept);
  void operator()(Communicator&) const;

 private:
  DType dtype_;
  const void* data_;
  std::size_t count_;
  void* out_;
  int peer_;
  double selfWeight_;
  double pairWeight_;
  CallOptions options_;
};

/// What send, receive and their twins do.
class MessageCall {
 public:
  /// Reads (dtype, data, peer, tag, timeoutMs). lowestPeer: 0 for a send, kAnySource for a receive.
  MessageCall(const Napi::CallbackInfo&, const Side&, int lowestPeer, Kept* kept);
  void send(Communicator&) const;
  Received receive(Communicator&) const;

 private:
  DType dtype_;
  void* data_;
  std::size_t count_;
  int peer_;
  int tag_;
  CallOptions options_;
};

}  // namespace gradlink::binding
