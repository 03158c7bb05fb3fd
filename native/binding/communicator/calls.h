// A communicator's call: read and checked on the JavaScript thread, run on any.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "binding/buffer_view.h"
#include "binding/napi_setup.h"
#include "binding/pending_op.h"
#include "core/communicator.h"
#include "core/fusion.h"

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

/// For checking buffers: the communicator and each held rank's GPU (empty: host memory).
struct Side {
  const Communicator& communicator;
  std::span<const int> gpus;

  int deviceOf(std::size_t held) const { return gpus.empty() ? kHost : gpus[held]; }
  std::size_t held() const { return communicator.heldRanks().size(); }
};

struct GivenArguments {
  const Napi::CallbackInfo& info;
  /// Kind-specific arguments, or undefined.
  Napi::Value more;
  /// The caller's name for the call; undefined or empty: none.
  Napi::Value name;
  const Side& side;
  /// Keeps the arrays until the call is done; may be null.
  Kept* kept;
};

/// The parts besides a shape and buffers; see Call.
struct CallParts;

class GivenCall {
 public:
  /// Reads (call, input, output, count, root, timeoutMs) and the kind-specific arguments of
  /// lib/native/communicator.ts; checks lengths and devices.
  explicit GivenCall(const GivenArguments&);
  ~GivenCall();
  GivenCall(const GivenCall&) = delete;
  GivenCall& operator=(const GivenCall&) = delete;

  void run(Communicator&);
  /// Nothing unless it is a plain sum or an average with neighbors.
  std::optional<FusedCall> fused() const;
  /// For a receive { source, count }; for a counted collective { counts: elements from each rank,
  /// for each held rank in a row, made: ArrayBuffers }; else undefined.
  Napi::Value result(Napi::Env) const;

 private:
  void readBuffers(const GivenArguments&);
  void readScales(const GivenArguments&);
  void readMessage(const GivenArguments&);
  /// For ranks with host memory: multiplies the inputs in memory of the call.
  void runScaled(Communicator&) const;

  Shape shape_;
  std::string name_;
  CallOptions options_;
  RankPointers<const void*> in_;
  RankPointers<void*> out_;
  /// One for each held rank, or none.
  std::vector<double> scales_;
  /// The factor of results, for ranks with host memory.
  std::optional<double> postscale_;
  /// For a send or receive of one rank, the short calls.
  std::optional<Message> message_;
  std::unique_ptr<CallParts> parts_;
};

}  // namespace gradlink::binding
