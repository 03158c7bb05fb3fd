// One rank's part in a communicator: its place in the segment, the agreement that starts every
// collective, and the failure that ends them all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/error.h"
#include "shm/deferred_unmaps.h"
#include "shm/segment.h"
#include "shm/wait.h"

namespace gradlink::shm {

/// Whether a rank's process runs. Threads have none: they mark their own leaving.
class Liveness {
 public:
  virtual ~Liveness() = default;
  virtual bool alive(int rank) = 0;
};

struct Membership {
  std::shared_ptr<void> memory;
  Segment segment;
  /// Null for processes.
  std::shared_ptr<DeferredUnmaps> deferredUnmaps;
  /// Null for threads.
  std::unique_ptr<Liveness> liveness;
  /// The segment's file, owned by `liveness`; -1 for threads.
  int file = -1;
  /// Destroyed when this process is done with the rings; null for threads.
  std::shared_ptr<void> rings = nullptr;
};

/// Called by each rank before the rendezvous ends: how ranks wait depends on all of their cores.
void recordCores(const Segment& segment, int rank);

class Session {
 public:
  Session(Membership membership, int rank);
  ~Session();

  int rank() const { return rank_; }
  int size() const { return segment_.size(); }
  bool betweenProcesses() const { return liveness_ != nullptr; }
  int file() const { return file_; }
  const Segment& segment() const { return segment_; }
  const Waiter& waiter() const { return waiter_; }
  bool ownCores() const;
  RankBlock& own() const { return segment_.rank(rank_); }

  /// Announces a call with up to Segment::kOneShotBytes of payload and waits for all ranks'
  /// announcements. Throws a mismatch on all of them if they differ. Returns the call's number for
  /// payload(), valid until this rank announces its next call.
  std::uint32_t meet(const Shape& shape, std::span<const std::byte> payload,
                     CallTimeout& callTimeout);
  /// The same for a call whose data lies elsewhere.
  std::uint32_t meet(const Shape& shape, const BufferRef (&refs)[2], CallTimeout& callTimeout);
  /// Additional data for the next meet() of a call whose data lies elsewhere; written in place.
  std::byte* nextAppendix() { return segment_.oneShot(rank_, calls_ + 1); }
  const std::byte* appendix(int rank, std::uint32_t call) const {
    return segment_.oneShot(rank, call);
  }
  /// The payload of the next meetWithPayload(); written in place.
  std::byte* nextPayload(std::size_t bytes);
  std::uint32_t meetWithPayload(const Shape& shape, CallTimeout& callTimeout);

  const std::byte* payload(int rank, std::uint32_t call, std::size_t bytes) const;
  /// Sends these with this rank's announcements from the next on.
  void report(float best, float tried) {
    reported_[0] = best;
    reported_[1] = tried;
  }
  const float* reported(int rank, std::uint32_t call) const { return post(rank, call).reported; }
  const BufferRef* refs(int rank, std::uint32_t call) const { return post(rank, call).refs; }

  /// Throws the error that ended the communicator, if any.
  void check(const char* op);
  bool ended() const;
  /// Ends the communicator on all ranks unless it has ended; throws the first error.
  [[noreturn]] void end(ErrorCode code, int rank, const char* op, const std::string& message);
  void failAll(ErrorCode code, int rank, const char* op, const std::string& message);
  [[noreturn]] void throwFailure(const char* op) const;

  /// Waiting calls of this session fail once `above` has ended. `above` outlives it.
  void follow(const Session& above) { above_.store(&above, std::memory_order_release); }
  bool aboveEnded() const;
  /// Ends this communicator with the error of the one it follows; throws it.
  [[noreturn]] void endAsAbove(const char* op);

  /// Own calls end with ERR_CLOSED, those of peers that need this rank with peerLost. Thread-safe.
  void leave();
  bool leaving() const { return leaving_.load(std::memory_order_acquire); }
  /// Leaves in good order. This rank makes no further calls.
  void markLeft();

  bool hasLeft(int rank) const {
    return segment_.rank(rank).left.load(std::memory_order_acquire) != 0;
  }
  /// A peer that ended without leaving, or -1.
  int deadPeer();
  /// Whether the rank's process runs; always true between threads. The own lock cannot be tested.
  bool alive(int rank) { return liveness_ == nullptr || rank == rank_ || liveness_->alive(rank); }
  const char* peers() const { return betweenProcesses() ? "process" : "thread"; }

 private:
  Post& post(int rank, std::uint32_t call) const { return segment_.rank(rank).posts[call & 1]; }
  /// Announces the next call and waits for all; returns whether all announced the same.
  bool announce(const Shape& shape, const char* op, CallTimeout& callTimeout);
  void agree(std::uint32_t call, CallTimeout& callTimeout);
  /// The recorded failure; its message names no call.
  Error failure(const char* op) const;

  std::shared_ptr<void> rings_;
  std::shared_ptr<void> memory_;
  Segment segment_;
  std::unique_ptr<Liveness> liveness_;
  int file_;
  int rank_;
  Waiter waiter_;
  std::uint32_t calls_ = 0;
  /// Of this call. The next is likely to have as many.
  std::size_t payloadBytes_ = 0;
  float reported_[2] = {0, 0};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> left_{false};
  std::atomic<const Session*> above_{nullptr};
};

/// The watch of a wait inside a collective: any error ends the communicator.
class CallWatch final : public Watch {
 public:
  static constexpr int kEverybody = -1;

  CallWatch(Session& session, const char* op, CallTimeout& callTimeout)
      : Watch(callTimeout), session_(session), op_(op) {}

  CallWatch& on(int rank) {
    awaited_ = rank;
    return *this;
  }
  bool troubled() override;
  [[noreturn]] void fail() override;

 private:
  int lateRank() const;

  Session& session_;
  const char* op_;
  int awaited_ = kEverybody;
  int lost_ = -1;
};

}  // namespace gradlink::shm
