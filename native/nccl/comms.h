// The held ranks' handles in the library, each with its GPU, stream and event: rendezvous,
// launching, waiting and ending. Not thread-safe: NCCL allows one thread at a time in a
// communicator.
//
// Handles are non-blocking: what the library does in the background is asked about with a deadline,
// so that nothing can hang here. The one exception is the blocking kind, of which see open().
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

/// What one wait is for and what ends it early.
struct Watch {
  /// The operation, for messages: "allReduce".
  const char* op;
  Deadline deadline;
  /// Called now and then; throws to end the wait. May be empty.
  std::function<void()> look;
  /// What the caller named the operation; null: nothing.
  const char* name = nullptr;

  /// Milliseconds until the deadline, infinity without one; 0 when it has passed.
  double leftMs() const;
};

/// A group of the calling thread: what is called between its begin and its end is one launch.
class Group {
 public:
  explicit Group(const Library& library);
  /// What was called in a group that is left by an exception is not launched by us.
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
    /// Scratch of scans: where blocks are put together, by the stream that they are queued on, and
    /// some elements of each type and op's identity. Both only grow, since what was queued, or
    /// captured in a graph, goes on using them.
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

  /// Meets the other ranks. Blocking: only once everybody is known to come, as nothing can end it;
  /// for simulations, which a non-blocking group would run instead.
  /// Several ids only where the library takes them.
  void open(std::span<const UniqueId>, const Watch&, bool blocking = false);

  /// Calls queue(i) for each member, its GPU being current, as one group, and returns when the
  /// library has launched all of it.
  void group(const Watch&, const std::function<abi::Result(std::size_t)>& queue);
  /// Held from before group() until after finish(): what has been launched may wait for ranks of
  /// this process that have yet to launch, and they for memory that is given back, which waits for
  /// what has been launched.
  [[nodiscard]] std::unique_ptr<cuda::Launching> inFlight(const Watch&) const;
  /// Waits until streams[i] is past what was queued for member i, looking for trouble meanwhile.
  void finish(const Watch&, std::span<cuda::Stream* const> streams);
  /// Throws what the library reports of these communicators.
  void check(const char* op) const;

  /// Ends what is queued and frees the handles. Returns when the members' own streams are free.
  void abort();
  /// Frees the handles in good order; aborts where that fails.
  void close(Deadline);
  /// After one of the two: gives the members' streams back. There are no members from then on.
  void dissolve() { members_.clear(); }

 private:
  /// Whether others hold ranks, other threads or processes.
  bool isAlone() const { return members_.size() < static_cast<std::size_t>(size_); }
  void settle(const Watch&, const char* what) const;
  /// Whether the library is done with what it was asked in the background.
  bool settled(const char* op) const;
  [[noreturn]] void throwLate(const Watch&) const;

  const cuda::PeersInUse peersInUse_;
  const Library& library_;
  int size_;
  Members members_;
  /// While the handles are open, and there are several ranks.
  std::optional<cuda::KeepMemory> keeping_;
};

}  // namespace gradlink::nccl
