// A call of a communicator as it comes from JavaScript: read and checked on the JavaScript thread,
// run on any.
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

/// What buffers are checked against: the communicator, and the GPU of each held rank (none: they
/// are in host memory).
struct Side {
  const Communicator& communicator;
  std::span<const int> gpus;

  int deviceOf(std::size_t held) const { return gpus.empty() ? kHost : gpus[held]; }
  std::size_t held() const { return communicator.heldRanks().size(); }
};

/// The arguments of run and runSync, and what the call gives.
struct GivenArguments {
  const Napi::CallbackInfo& info;
  /// What the kind brings besides; undefined: nothing.
  Napi::Value more;
  /// Undefined, or empty: the caller gave none.
  Napi::Value name;
  const Side& side;
  /// Where arrays are kept until the call is done; null: nowhere.
  Kept* kept;
};

/// What calls bring besides a shape and buffers; see Call.
struct CallParts;

class GivenCall {
 public:
  /// Reads (call, input, output, count, root, timeoutMs) and what lib/native/communicator.ts says
  /// of the kind; checks lengths and devices.
  explicit GivenCall(const GivenArguments&);
  ~GivenCall();
  GivenCall(const GivenCall&) = delete;
  GivenCall& operator=(const GivenCall&) = delete;

  void run(Communicator&);
  /// Nothing where it is neither a plain sum nor an average with neighbors.
  std::optional<FusedCall> fused() const;
  /// Of a receive { source, count }; of a collective with counts { counts: what came from each
  /// rank, for each held rank in a row, made: ArrayBuffers }; else undefined.
  Napi::Value result(Napi::Env) const;

 private:
  void readBuffers(const GivenArguments&);
  void readScales(const GivenArguments&);
  void readMessage(const GivenArguments&);
  /// On ranks with host memory: inputs are multiplied in memory of the call's own.
  void runScaled(Communicator&) const;

  Shape shape_;
  std::string name_;
  CallOptions options_;
  RankPointers<const void*> in_;
  RankPointers<void*> out_;
  /// One for each held rank, or none.
  std::vector<double> scales_;
  /// What results are multiplied by, where ranks have host memory.
  std::optional<double> postscale_;
  /// Of a send and a receive of one rank, which are short.
  std::optional<Message> message_;
  /// What other calls bring besides.
  std::unique_ptr<CallParts> parts_;
};

}  // namespace gradlink::binding
