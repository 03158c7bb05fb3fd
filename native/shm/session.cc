#include "shm/session.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/agreement.h"
#include "core/memory/prefetch.h"

namespace gradlink::shm {
namespace {

void store(char* to, std::size_t room, const std::string& text) {
  const std::size_t length = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Longer payloads are written in ways of which the faster is found by measuring.
constexpr std::size_t kMostFetchedBytes = 2048;

// Each rank may be bound to its own cores.
bool haveOwnCores(const Segment& segment) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int r = 0; r < segment.size(); ++r) CPU_OR(&all, &all, &segment.rank(r).cores);
  return CPU_COUNT(&all) >= segment.size();
}

}  // namespace

void recordCores(const Segment& segment, int rank) {
  cpu_set_t& cores = segment.rank(rank).cores;
  // Fails with more than 1024 cores, which are enough for every rank.
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) std::memset(&cores, 0xff, sizeof(cores));
}

Session::Session(Membership membership, int rank)
    : rings_(std::move(membership.rings)),
      memory_(std::move(membership.memory)),
      segment_(membership.segment),
      liveness_(std::move(membership.liveness)),
      file_(membership.file),
      rank_(rank),
      waiter_(liveness_ != nullptr, haveOwnCores(segment_)) {}

bool Session::ownCores() const { return haveOwnCores(segment_); }

Session::~Session() { markLeft(); }

std::byte* Session::nextPayload(std::size_t bytes) {
  const std::uint32_t call = calls_ + 1;
  Post& mine = post(rank_, call);
  payloadBytes_ = bytes;
  return bytes <= sizeof(mine.payload) ? mine.payload : segment_.oneShot(rank_, call);
}

const std::byte* Session::payload(int rank, std::uint32_t call, std::size_t bytes) const {
  const Post& theirs = post(rank, call);
  return bytes <= sizeof(theirs.payload) ? theirs.payload : segment_.oneShot(rank, call);
}

std::uint32_t Session::meet(const Shape& shape, std::span<const std::byte> payload,
                            CallTimeout& callTimeout) {
  if (!payload.empty()) std::memcpy(nextPayload(payload.size()), payload.data(), payload.size());
  return meetWithPayload(shape, callTimeout);
}

std::uint32_t Session::meet(const Shape& shape, const BufferRef (&refs)[2],
                            CallTimeout& callTimeout) {
  std::memcpy(post(rank_, calls_ + 1).refs, refs, sizeof(refs));
  return meetWithPayload(shape, callTimeout);
}

std::uint32_t Session::meetWithPayload(const Shape& shape, CallTimeout& callTimeout) {
  if (!announce(shape, nameOf(shape.kind), callTimeout)) agree(calls_, callTimeout);
  return calls_;
}

bool Session::announce(const Shape& shape, const char* op, CallTimeout& callTimeout) {
  const std::uint32_t call = ++calls_;
  Post& mine = post(rank_, call);
  mine.shape = shape;
  mine.reported[0] = reported_[0];
  mine.reported[1] = reported_[1];
  waiter_.publish(mine.posted, call);
  CallWatch watch(*this, op, callTimeout);
  bool agreed = true;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    Post& theirs = post(r, call);
    waiter_.await(theirs.posted, call, watch.on(r));
    agreed = agreed && theirs.shape == shape;
  }
  // All have read what this rank posted last, and the next post takes that place.
  prefetchForWriting(&post(rank_, call + 1), sizeof(Post));
  if (payloadBytes_ > sizeof(mine.payload) && payloadBytes_ <= kMostFetchedBytes) {
    prefetchForWriting(segment_.oneShot(rank_, call + 1), payloadBytes_);
  }
  payloadBytes_ = 0;
  return agreed;
}

// Every rank compares the same announcements, so all throw. Nothing was moved and the next call
// starts afresh: the communicator stays usable.
void Session::agree(std::uint32_t call, CallTimeout& callTimeout) {
  std::vector<Shape> all(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) all[static_cast<std::size_t>(r)] = post(r, call).shape;
  const char* const op = nameOf(post(rank_, call).shape.kind);
  checkSame<Shape>(op, all, rank_, [&] {
    const CallName own(callTimeout.name());
    std::memcpy(nextPayload(sizeof(own)), &own, sizeof(own));
    CallTimeout names(deadlineOfNames(callTimeout.deadline()));
    announce(kNamesCall, op, names);
    std::vector<CallName> allNames(all.size());
    for (int r = 0; r < size(); ++r) {
      std::memcpy(&allNames[static_cast<std::size_t>(r)], this->payload(r, calls_, sizeof(own)),
                  sizeof(own));
    }
    return allNames;
  });
}

bool Session::ended() const {
  return leaving() ||
         segment_.header().failure.state.load(std::memory_order_seq_cst) != Failure::none;
}

void Session::check(const char* op) {
  if (ended()) throwFailure(op);
}

void Session::failAll(ErrorCode code, int rank, const char* op, const std::string& message) {
  Failure& failure = segment_.header().failure;
  std::uint32_t expected = Failure::none;
  if (!failure.state.compare_exchange_strong(expected, Failure::writing, std::memory_order_seq_cst))
    return;
  failure.code = static_cast<std::int32_t>(code);
  failure.rank = rank;
  store(failure.op, sizeof(failure.op), op);
  store(failure.message, sizeof(failure.message), message);
  failure.state.store(Failure::written, std::memory_order_seq_cst);
}

void Session::end(ErrorCode code, int rank, const char* op, const std::string& message) {
  if (!leaving()) failAll(code, rank, op, message);
  throwFailure(op);
}

Error Session::failure(const char* op) const {
  Failure& failure = segment_.header().failure;
  // The writer may have been killed before it finished.
  const Deadline deadline = Deadline::in(100);
  while (failure.state.load(std::memory_order_acquire) != Failure::written) {
    if (deadline.passed()) {
      return Error(ErrorCode::peerLost, "a rank was lost while it ended the communicator")
          .withOp(op);
    }
    cpuRelax();
  }
  return Error(static_cast<ErrorCode>(failure.code), failure.message)
      .withRank(failure.rank)
      .withOp(op);
}

void Session::throwFailure(const char* op) const {
  if (leaving()) {
    throw Error(ErrorCode::closed,
                std::string(op) + ": rank " + std::to_string(rank_) + " has left the communicator")
        .withRank(rank_)
        .withOp(op);
  }
  const Error reported = failure(op);
  throw Error(reported.code, std::string(op) + ": " + reported.what())
      .withRank(reported.rank)
      .withOp(op);
}

bool Session::aboveEnded() const {
  const Session* above = above_.load(std::memory_order_acquire);
  return above != nullptr && above->ended();
}

void Session::endAsAbove(const char* op) {
  const Session& above = *above_.load(std::memory_order_acquire);
  if (above.leaving()) {
    end(ErrorCode::aborted, -1, op, "the communicator that this one is part of was left");
  }
  const Error reported = above.failure(op);
  // Ranks of that communicator have other numbers.
  end(reported.code, -1, op, reported.what());
}

void Session::leave() {
  leaving_.store(true, std::memory_order_seq_cst);
  failAll(ErrorCode::peerLost, rank_, "leave",
          "rank " + std::to_string(rank_) + " was lost: its " + peers() + " ended");
}

void Session::markLeft() {
  // Once: later the rings may belong to another communicator.
  if (left_.exchange(true, std::memory_order_acq_rel)) return;
  own().left.store(1, std::memory_order_release);
  segment_.doneWithRings(rank_).store(1, std::memory_order_release);
}

int Session::deadPeer() {
  if (liveness_ == nullptr) return -1;
  for (int r = 0; r < size(); ++r) {
    // In this order: a leaving rank sets the mark before its lock goes.
    if (r != rank_ && !liveness_->alive(r) && !hasLeft(r)) return r;
  }
  return -1;
}

// The deadline comes last: a lost rank is the better explanation.
bool CallWatch::troubled() {
  if (session_.ended() || session_.aboveEnded()) return true;
  if (awaited_ != kEverybody && session_.hasLeft(awaited_)) {
    lost_ = awaited_;
    return true;
  }
  lost_ = session_.deadPeer();
  return lost_ >= 0 || callTimeout.deadline().passed();
}

// A wait for no particular rank is for the parts of a call: the late rank still works on one.
int CallWatch::lateRank() const {
  if (awaited_ != kEverybody) return awaited_;
  for (int r = 0; r < session_.size(); ++r) {
    if (r != session_.rank() && session_.segment().rank(r).working.load() != 0) return r;
  }
  return -1;
}

void CallWatch::fail() {
  if (session_.ended()) session_.throwFailure(op_);
  if (session_.aboveEnded()) session_.endAsAbove(op_);
  const std::string me = std::to_string(session_.rank());
  if (lost_ >= 0) {
    const bool left = session_.hasLeft(lost_);
    session_.end(ErrorCode::peerLost, lost_, op_,
                 "rank " + std::to_string(lost_) +
                     (left ? " has left the communicator" : " was lost: its process ended") +
                     " (noticed by rank " + me + " in " + op_ + ")");
  }
  const int late = lateRank();
  session_.end(
      ErrorCode::timeout, late, op_,
      "rank " + me + " gave up waiting for " +
          (late < 0 ? std::string("the other ranks") : "rank " + std::to_string(late)) + " in " +
          op_ +
          ": the deadline has passed. Did every rank make this call? timeoutMs sets the deadline");
}

}  // namespace gradlink::shm
