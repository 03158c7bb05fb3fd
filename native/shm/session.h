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

/// Tells whether a rank still runs. Threads of one process have none: they mark their leaving
/// themselves.
class Liveness {
 public:
  virtual ~Liveness() = default;
  virtual bool alive(int rank) = 0;
};

/// What joining yields.
struct Membership {
  /// Keeps the segment mapped.
  std::shared_ptr<void> memory;
  Segment segment;
  /// Null for processes.
  std::shared_ptr<DeferredUnmaps> deferredUnmaps;
  /// Null for threads.
  std::unique_ptr<Liveness> liveness;
  /// The segment's file, -1 for threads; owned by `liveness`.
  int file = -1;
  /// Says when this process is done with the rings; null for threads.
  std::shared_ptr<void> rings = nullptr;
};

/// Called by each rank before the rendezvous ends: how ranks wait depends on the cores they have
/// together.
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
  /// Whether every rank has one.
  bool ownCores() const;
  RankBlock& own() const { return segment_.rank(rank_); }

  /// Announces a call with up to Segment::kOneShotBytes of payload, waits until all ranks have
  /// announced theirs and throws mismatch on all of them when they differ. Returns the call's
  /// number, by which payload() finds what the others brought: until this rank announces its next
  /// call.
  std::uint32_t meet(const Shape& shape, std::span<const std::byte> payload,
                     CallTimeout& callTimeout);
  /// The same for a call whose data lies elsewhere.
  std::uint32_t meet(const Shape& shape, const BufferRef (&refs)[2], CallTimeout& callTimeout);
  /// To fill in place, for the next meet() of a call whose data lies elsewhere and that brings
  /// something beside it.
  std::byte* nextAppendix() { return segment_.oneShot(rank_, calls_ + 1); }
  const std::byte* appendix(int rank, std::uint32_t call) const {
    return segment_.oneShot(rank, call);
  }
  /// To fill in place, for the next meet() with this many bytes of payload.
  std::byte* nextPayload(std::size_t bytes);
  std::uint32_t meetWithPayload(const Shape& shape, CallTimeout& callTimeout);

  const std::byte* payload(int rank, std::uint32_t call, std::size_t bytes) const;
  /// To be reported to all ranks with this rank's calls from the next on.
  void report(float best, float tried) {
    reported_[0] = best;
    reported_[1] = tried;
  }
  /// What a rank reported with a call.
  const float* reported(int rank, std::uint32_t call) const { return post(rank, call).reported; }
  const BufferRef* refs(int rank, std::uint32_t call) const { return post(rank, call).refs; }

  /// Throws what ended the communicator, if anything did.
  void check(const char* op);
  bool ended() const;
  /// Ends the communicator on all ranks, unless something else did first; throws what did.
  [[noreturn]] void end(ErrorCode code, int rank, const char* op, const std::string& message);
  void failAll(ErrorCode code, int rank, const char* op, const std::string& message);
  [[noreturn]] void throwFailure(const char* op) const;

  /// What ends `above` ends this one too, once a call of this one waits. It outlives this one.
  void follow(const Session& above) { above_.store(&above, std::memory_order_release); }
  /// Whether what this one follows has ended.
  bool aboveEnded() const;
  /// Ends this communicator as the one it follows ended; throws what did.
  [[noreturn]] void endAsAbove(const char* op);

  /// Own calls end with ERR_CLOSED, those of peers that need this rank with peerLost. From any
  /// thread.
  void leave();
  bool leaving() const { return leaving_.load(std::memory_order_acquire); }
  /// In good order. No call of this rank is under way, and none follows.
  void markLeft();

  bool hasLeft(int rank) const {
    return segment_.rank(rank).left.load(std::memory_order_acquire) != 0;
  }
  /// A peer that ended without leaving, -1 when there is none.
  int deadPeer();
  /// Whether the rank's process runs; true between threads. This rank's does: it is not asked for,
  /// whose own lock is no other's.
  bool alive(int rank) { return liveness_ == nullptr || rank == rank_ || liveness_->alive(rank); }
  const char* peers() const { return betweenProcesses() ? "process" : "thread"; }

 private:
  Post& post(int rank, std::uint32_t call) const { return segment_.rank(rank).posts[call & 1]; }
  /// Announces the next call and waits for the others'; whether all announced the same.
  bool announce(const Shape& shape, const char* op, CallTimeout& callTimeout);
  void agree(std::uint32_t call, CallTimeout& callTimeout);
  /// The failure, once it is there: its message names no call.
  Error failure(const char* op) const;

  std::shared_ptr<void> rings_;
  std::shared_ptr<void> memory_;
  Segment segment_;
  std::unique_ptr<Liveness> liveness_;
  int file_;
  int rank_;
  Waiter waiter_;
  std::uint32_t calls_ = 0;
  float reported_[2] = {0, 0};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> left_{false};
  std::atomic<const Session*> above_{nullptr};
};

/// The watch of a wait inside a collective: whatever goes wrong ends the communicator.
class CallWatch final : public Watch {
 public:
  static constexpr int kEverybody = -1;

  CallWatch(Session& session, const char* op, CallTimeout& callTimeout)
      : Watch(callTimeout), session_(session), op_(op) {}

  /// Whom the next wait is for.
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
