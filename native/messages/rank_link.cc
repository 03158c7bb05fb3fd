#include "messages/rank_link.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/agreement.h"
#include "core/kernels/copy_bytes.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

/// Ranks announce their wait after half of their time or this, so timeouts name the late rank.
constexpr double kAnnounceAfterMs = 1000;
/// The wait for requests after a failure. MPI could later write to the freed memory of a receive.
constexpr double kGiveUpMs = 10000;
constexpr double kGiveUpSendsMs = 200;

enum class ControlKind : std::uint32_t { waiting, failure };

/// Followed by the operation, a zero byte and the message.
struct ControlMessage {
  ControlKind kind;
  std::int32_t code;
  std::int32_t rank;
  std::uint32_t reserved;
  std::uint64_t call;
};

}  // namespace

Link::Link(CommHandle comm) : Link(comm, shim()) {}

Link::Link(CommHandle comm, const Shim& mpi) : mpi_(mpi), comm_(comm) {
  checkMpi("ask for the rank", mpi_.rank(comm, &rank_));
  checkMpi("ask for the size", mpi_.size(comm, &size_));
  left_.assign(static_cast<std::size_t>(size_), kHere);
  waiting_.assign(static_cast<std::size_t>(size_), 0);
}

void Link::await(RequestHandle* request, Wait& wait, MessageStatus* status) {
  try {
    while (!test(request, status)) wait.pause();
  } catch (...) {
    std::vector<RequestHandle> receives{*request};
    std::vector<RequestHandle> none;
    giveUp(receives, none);
    throw;
  }
}

void Link::giveUp(std::vector<RequestHandle>& receives, std::vector<RequestHandle>& sends) {
  const auto drop = [&](std::vector<RequestHandle>& requests, double milliseconds) {
    const Deadline deadline = Deadline::in(milliseconds);
    Pause pause;
    for (;;) {
      std::erase_if(requests, [&](RequestHandle& request) {
        bool done = false;
        return mpi_.test(&request, &done, nullptr) != 0 || done;
      });
      if (requests.empty() || deadline.passed()) return;
      pause.after();
    }
  };
  for (RequestHandle& request : receives) mpi_.cancel(&request);
  drop(receives, kGiveUpMs);
  if (!receives.empty()) {
    abortJob("gradlink: MPI does not give back the memory of a receive after a failure (" +
             std::to_string(receives.size()) + " requests of rank " + std::to_string(rank_) +
             "); ending the job");
  }
  drop(sends, kGiveUpSendsMs);
  if (mpi_.release != nullptr) {
    for (RequestHandle& request : sends) mpi_.release(&request);
  } else if (!sends.empty()) {
    clean_ = false;
  }
  sends.clear();
}

void Link::sendToAll(const void* data, std::size_t bytes, int tag) {
  auto copy = std::make_unique<std::byte[]>(bytes);
  copyBytes(copy.get(), data, bytes);
  std::lock_guard lock(mutex_);
  for (int r = 0; r < size_; ++r) {
    RequestHandle request;
    if (r == rank_ || mpi_.isend(copy.get(), bytes, r, tag, comm_, &request) != 0) continue;
    controlSends_.push_back(request);
  }
  controlData_.push_back(std::move(copy));
}

void Link::setFailure(Error error) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(error);
  ended_.store(true, std::memory_order_release);
}

/// For jobs that outlive a dead process: its peers check for it here.
void Link::notice() {
  if (mpi_.goneAbove == nullptr) return;
  std::vector<int> gone;
  for (int r = mpi_.goneAbove(comm_, -1); r >= 0; r = mpi_.goneAbove(comm_, r)) gone.push_back(r);
  // Its last messages have come before its end.
  hear();
  for (const int rank : gone) {
    if (hasLeft(rank)) continue;
    failAll(ErrorCode::peerLost, rank, "",
            "rank " + std::to_string(rank) + " was lost: " + mpi_.whyGone(comm_, rank));
    return;
  }
}

void Link::listen() {
  hear();
  if (!ended()) notice();
}

void Link::hear() {
  if (above_ != nullptr) {
    above_->listen();
    if (above_->ended()) {
      setFailure(Error(ErrorCode::aborted, "the communicator that this one is part of has ended"));
    }
  }
  MessageStatus status;
  while (goodbyes_ < size_ - 1 && probe(kAnySourceOfShim, kLeftTag, &status)) {
    Goodbye goodbye;
    receiveProbed(&goodbye, sizeof(goodbye), status);
    left_[static_cast<std::size_t>(status.source)] = goodbye.calls;
    clean_ = clean_ && goodbye.clean != 0;
    ++goodbyes_;
  }
  while (probe(kAnySourceOfShim, kControlTag, &status)) {
    std::vector<char> bytes(std::max(status.bytes, sizeof(ControlMessage)) + 1);
    receiveProbed(bytes.data(), status.bytes, status);
    ControlMessage control;
    std::memcpy(&control, bytes.data(), sizeof(control));
    if (control.kind == ControlKind::waiting) {
      waiting_[static_cast<std::size_t>(status.source)] = control.call;
      continue;
    }
    const char* op = bytes.data() + sizeof(ControlMessage);
    const char* text = op + std::strlen(op) + 1;
    setFailure(Error(static_cast<ErrorCode>(control.code), text).withRank(control.rank).withOp(op));
  }
}

void Link::check(const char* op) {
  if (!ended()) return;
  std::lock_guard lock(mutex_);
  Error error = *failure_;
  if (error.op.empty()) error.op = op;
  throw error;
}

void Link::failAll(ErrorCode code, int rank, const std::string& op, const std::string& message) {
  if (ended()) return;
  setFailure(Error(code, message).withRank(rank).withOp(op));
  const ControlMessage control{ControlKind::failure, static_cast<std::int32_t>(code), rank, 0,
                               call_};
  std::string bytes(reinterpret_cast<const char*>(&control), sizeof(control));
  bytes += op;
  bytes += '\0';
  bytes += message;
  bytes += '\0';
  sendToAll(bytes.data(), bytes.size(), kControlTag);
}

void Link::end(ErrorCode code, int rank, const char* op, const std::string& message) {
  failAll(code, rank, op, message);
  check(op);
  throw Error(code, message).withRank(rank).withOp(op);
}

int Link::leftBeforeCall() const {
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t calls = left_[static_cast<std::size_t>(r)];
    if (calls != kHere && calls < call_) return r;
  }
  return -1;
}

void Link::announceWaiting() {
  if (announced_ == call_) return;
  announced_ = call_;
  const ControlMessage control{ControlKind::waiting, 0, rank_, 0, call_};
  sendToAll(&control, sizeof(control), kControlTag);
}

std::vector<int> Link::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t calls = left_[static_cast<std::size_t>(r)];
    const bool came = waiting_[static_cast<std::size_t>(r)] >= call_ ||
                      (calls != kHere && calls >= call_) || r == rank_;
    if (!came) ranks.push_back(r);
  }
  return ranks;
}

void Link::leave() {
  const std::string me = std::to_string(rank_);
  if (ended()) return;
  failAll(ErrorCode::peerLost, rank_, "leave",
          "rank " + me + " was lost: its JavaScript environment ended");
  std::lock_guard lock(mutex_);
  // This rank gets another error than its peers.
  failure_ = Error(ErrorCode::closed, "the communicator is closed: its environment ended");
}

void Link::close(bool clean) {
  if (closed_) return;
  closed_ = true;
  if (!Runtime::get().running()) return;
  listen();
  const Goodbye goodbye{call_, clean && clean_ && !ended() ? 1u : 0u};
  sendToAll(&goodbye, sizeof(goodbye), kLeftTag);
  Runtime::get().retire({comm_, size_ - 1 - goodbyes_, goodbye.clean != 0, std::move(controlSends_),
                         std::move(controlData_)});
}

void Wait::start() {
  if (started_) return;
  started_ = true;
  deadline_ = Deadline::in(timeoutMs_);
  announce_ = Deadline::in(std::min(timeoutMs_ / 2, kAnnounceAfterMs));
}

Wait& Wait::forNames() {
  start();
  deadline_ = deadlineOfNames(deadline_);
  return *this;
}

void Wait::look() {
  start();
  if (!Runtime::get().running()) {
    throw Error(ErrorCode::closed, std::string(op_) + ": the process is ending").withOp(op_);
  }
  link_.listen();
  link_.check(op_);
  if (kind_ == Kind::message) {
    const bool gone = awaited_ < 0               ? link_.allLeft()
                      : awaited_ != link_.rank() ? link_.hasLeft(awaited_)
                                                 : false;
    // What it sent before it left is found by the first look after the goodbye.
    if (gone && doomed_) {
      throw Error(ErrorCode::peerLost,
                  std::string(op_) + ": waiting for " +
                      (awaited_ < 0 ? "any rank, but all others have"
                                    : "rank " + std::to_string(awaited_) + ", but it has") +
                      " left the communicator")
          .withRank(awaited_)
          .withOp(op_);
    }
    doomed_ = gone;
  } else if (kind_ == Kind::agreement) {
    if (const int left = link_.leftBeforeCall(); left >= 0) {
      link_.end(ErrorCode::peerLost, left, op_,
                "rank " + std::to_string(left) + " has left the communicator (noticed by rank " +
                    std::to_string(link_.rank()) + " in " + op_ + ")");
    }
    if (announce_.passed()) link_.announceWaiting();
  }
  if (deadline_.passed()) timeout();
}

void Wait::timeout() {
  if (kind_ == Kind::message) {
    throw harmless(ErrorCode::timeout, op_,
                   "the deadline has passed waiting for " +
                       (awaited_ < 0 ? "any rank" : "rank " + std::to_string(awaited_)) +
                       "; timeoutMs sets the deadline")
        .withRank(awaited_);
  }
  std::vector<int> missing;
  if (kind_ == Kind::agreement) missing = link_.missing();
  if (missing.empty() && awaited_ >= 0) missing = {awaited_};
  link_.end(ErrorCode::timeout, missing.empty() ? -1 : missing[0], op_,
            "rank " + std::to_string(link_.rank()) + " gave up waiting for " +
                (missing.empty() ? std::string("the other ranks") : listOfRanks(missing)) + " in " +
                op_ +
                ": the deadline has passed. Did every rank make this call? timeoutMs sets the "
                "deadline");
}

Batch::~Batch() {
  if (!receives_.empty() || !sends_.empty()) link_->giveUp(receives_, sends_);
}

void Batch::send(const void* data, std::size_t bytes, int destination, int tag) {
  const auto* at = static_cast<const std::byte*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t length = std::min(kMostMessageBytes, bytes - done);
    sends_.emplace_back();
    link_->isend(at + done, length, destination, tag, &sends_.back());
    done += length;
  }
}

void Batch::receive(void* data, std::size_t bytes, int source, int tag) {
  auto* at = static_cast<std::byte*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t length = std::min(kMostMessageBytes, bytes - done);
    receives_.emplace_back();
    link_->irecv(at + done, length, source, tag, &receives_.back());
    done += length;
  }
}

void Batch::advance(std::vector<RequestHandle>& requests) {
  for (std::size_t i = 0; i < requests.size();) {
    if (!link_->test(&requests[i])) {
      ++i;
      continue;
    }
    requests[i] = requests.back();
    requests.pop_back();
  }
}

}  // namespace gradlink::messages
