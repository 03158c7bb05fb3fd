// The held ranks' NCCL handles, each with its GPU, stream and event: rendezvous, launch, wait, end.
// Not thread-safe: NCCL allows one thread at a time in a communicator.
//
// Handles are non-blocking and polled with a deadline, so nothing can hang here. The exception is
// the blocking kind: see open().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/deadline.h"
#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"
#include "cuda/device.h"
#include "cuda/kept_memory.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "nccl/abi.h"
#include "nccl/library.h"
#include "nccl/nccl.h"

namespace gradlink::nccl {

/// What one wait is for, and what ends it early.
struct Watch {
  /// The operation, for messages: "allReduce".
  const char* op;
  Deadline deadline;
  /// Called now and then; throws to end the wait. May be empty.
  std::function<void()> look;
  const char* name = nullptr;

  /// Milliseconds until the deadline; infinity without one, 0 once passed.
  double leftMs() const;
};

/// A group of the calling thread: its calls are one launch.
class Group {
 public:
  explicit Group(const Library& library);
  /// After an exception the group's calls are not launched.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  abi::Result end();
  abi::Result simulate(abi::Simulation& simulation);

 private:
  const Library& library_;
  bool open_ = true;
};

class Comms {
 public:
  struct Member {
    Member(int rank, cuda::Device& device)
        : rank(rank), device(device), stream(device), done(device, false) {}

    int rank;
    cuda::Device& device;
    cuda::Stream stream;
    cuda::Event done;
    abi::CommHandle handle = nullptr;
    /// Scratch of scans: blocks by stream, and identity elements by type and op. Both only grow,
    /// because queued work and captured graphs keep using them.
    mutable std::map<cuda::StreamHandle, std::vector<cuda::DeviceMemory>> scans;
    mutable std::map<std::pair<DType, ReduceOp>, cuda::PinnedMemory> identities;
  };
  using Members = std::vector<std::unique_ptr<Member>>;

  Comms(std::span<const int> ranks, std::span<cuda::Device* const> devices, int size);
  ~Comms();
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  const Members& members() const { return members_; }
  int size() const { return size_; }

  /// Meets the other ranks. Blocking: only once all are known to come, as nothing can end it; for
  /// simulations, which a non-blocking group would run for real. Several ids only if supported.
  void open(std::span<const UniqueId>, const Watch&, bool blocking = false);

  /// Calls queue(i) for each member on its GPU as one group; returns once the library launched it.
  void group(const Watch&, const std::function<abi::Result(std::size_t)>& queue);
  /// Hold from before group() until after finish(). Launched work may wait for ranks of this
  /// process yet to launch, and those for memory being freed, which waits for launched work.
  [[nodiscard]] std::unique_ptr<cuda::Launching> inFlight(const Watch&) const;
  /// Waits until streams[i] has completed member i's work; checks for failures meanwhile.
  void finish(const Watch&, std::span<cuda::Stream* const> streams);
  /// Throws the library's error of these communicators.
  void check(const char* op) const;

  /// Ends queued work and frees the handles. Returns when the members' streams are idle.
  void abort();
  /// Frees the handles in good order; aborts if that fails.
  void close(Deadline);
  /// Call after one of the two: releases the members' streams.
  void dissolve() { members_.clear(); }

 private:
  /// Whether other threads or processes hold ranks.
  bool isAlone() const { return members_.size() < static_cast<std::size_t>(size_); }
  void settle(const Watch&, const char* what) const;
  /// Whether the library has finished its background work.
  bool settled(const char* op) const;
  [[noreturn]] void throwLate(const Watch&) const;

  const cuda::PeersInUse peersInUse_;
  const Library& library_;
  int size_;
  Members members_;
  /// Set while the handles are open and there are several ranks.
  std::optional<cuda::KeepMemory> keeping_;
};

}  // namespace gradlink::nccl
