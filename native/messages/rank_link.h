// One rank's place on one MPI communicator: sending, receiving and waiting with deadlines, and what
// ranks tell each other beside their calls: that one has left, that one waits, that it is all over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "messages/pause.h"
#include "messages/runtime.h"

namespace gradlink::messages {

class Wait;

class Link {
 public:
  explicit Link(CommHandle comm);
  /// Of another MPI than the loaded one: of a test's.
  Link(CommHandle comm, const Shim& mpi);

  int rank() const { return rank_; }
  int size() const { return size_; }
  CommHandle comm() const { return comm_; }

  void isend(const void* data, std::size_t bytes, int destination, int tag,
             RequestHandle* request) {
    checkMpi("send", mpi_.isend(data, bytes, destination, tag, comm_, request));
  }
  void irecv(void* data, std::size_t bytes, int source, int tag, RequestHandle* request) {
    checkMpi("receive", mpi_.irecv(data, bytes, source, tag, comm_, request));
  }
  bool test(RequestHandle* request, MessageStatus* status = nullptr) {
    bool done = false;
    checkMpi("wait", mpi_.test(request, &done, status));
    return done;
  }
  /// At most kMostTogether.
  bool testAll(RequestHandle* requests, int count) {
    bool done = false;
    checkMpi("wait", mpi_.testAll(requests, count, &done));
    return done;
  }
  /// Waits; where that fails the request is given up first.
  void await(RequestHandle* request, Wait& wait, MessageStatus* status = nullptr);
  bool probe(int source, int tag, MessageStatus* status) {
    bool found = false;
    checkMpi("probe", mpi_.probe(source, tag, comm_, &found, status));
    return found;
  }
  void receiveProbed(void* data, std::size_t bytes, const MessageStatus& status) {
    MessageStatus got;
    checkMpi("receive", mpi_.receive(data, bytes, status.source, status.tag, comm_, &got));
  }

  /// Ends requests after a failure: receives are taken back, so that their memory is free when this
  /// returns; sends may stay with MPI, which only reads.
  void giveUp(std::vector<RequestHandle>& receives, std::vector<RequestHandle>& sends);
  void giveUpReceive(RequestHandle request);

  // ---- calls that all ranks make: numbered from 1

  std::uint64_t call() const { return call_; }
  void beginCall() { ++call_; }

  // ---- what can end a wait

  /// Takes what the others have told.
  void listen();
  /// Ends with another, which outlives this one.
  void follow(Link* above) { above_ = above; }
  /// Throws what has ended the communicator.
  void check(const char* op);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Ends the communicator on all ranks, unless something else did first.
  void failAll(ErrorCode code, int rank, const std::string& op, const std::string& message);
  /// The same, and throws what ended it.
  [[noreturn]] void end(ErrorCode code, int rank, const char* op, const std::string& message);
  /// A rank that left in good order before it came to the current call; -1: none.
  int leftBeforeCall() const;
  bool allLeft() const { return size_ > 1 && goodbyes_ == size_ - 1; }
  bool hasLeft(int rank) const { return left_[static_cast<std::size_t>(rank)] != kHere; }
  /// Tells the others that this rank waits in the current call; once a call.
  void announceWaiting();
  /// Ranks that have not said that they came to the current call.
  std::vector<int> missing() const;

  /// In good order. `clean`: no request of this communicator is open.
  void close(bool clean);
  /// Own calls end with closed, those of peers with peerLost. From any thread.
  void leave();

 private:
  static constexpr std::uint64_t kHere = ~std::uint64_t{0};

  void hear();
  void notice();
  void tellAll(const void* data, std::size_t bytes, int tag);
  void setFailure(Error error);

  const Shim& mpi_;
  CommHandle comm_;
  Link* above_ = nullptr;
  int rank_ = 0;
  int size_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t announced_ = 0;
  /// Calls each rank had made when it left; the last call each was heard to wait in.
  std::vector<std::uint64_t> left_;
  std::vector<std::uint64_t> waiting_;
  int goodbyes_ = 0;
  bool closed_ = false;
  bool clean_ = true;

  std::mutex mutex_;
  std::atomic<bool> ended_{false};
  std::optional<Error> failure_;
  std::vector<RequestHandle> told_;
  std::vector<std::unique_ptr<std::byte[]>> tellings_;
};

/// One call's wait: how long it may take, and for whom.
class Wait {
 public:
  enum class Kind {
    agreement,  // a rank that left before this call will never come
    data,       // everybody has come
    message,    // of one peer; failing changes nothing
  };

  /// `name`: what the caller named the call; null: nothing.
  Wait(Link& link, const char* op, double timeoutMs, Kind kind, const char* name = nullptr)
      : link_(link), op_(op), name_(name), timeoutMs_(timeoutMs), kind_(kind) {}

  const char* op() const { return op_; }
  const char* name() const { return name_; }
  /// For names of calls, which get deadlineOfNames().
  Wait& forNames();
  Wait& as(Kind kind) {
    kind_ = kind;
    return *this;
  }
  /// Whom the wait is for; kAnySource: for anybody.
  Wait& on(int rank) {
    awaited_ = rank;
    return *this;
  }
  /// After a look that found nothing. Throws what ends the wait.
  void pause() {
    if (pause_.after()) [[unlikely]]
      look();
  }
  void came() { pause_.reset(); }

 private:
  /// Its clock, unless that runs.
  void start();
  void look();
  [[noreturn]] void timeout();

  Link& link_;
  const char* op_;
  const char* name_;
  double timeoutMs_;
  Kind kind_;
  int awaited_ = -1;
  /// Looks since it was seen that what is awaited can not come any more.
  bool doomed_ = false;
  bool started_ = false;
  Deadline deadline_ = Deadline::never();
  Deadline announce_ = Deadline::never();
  Pause pause_;
};

/// Requests of one call that are waited for together; those left are given up at the end.
class Batch {
 public:
  explicit Batch(Link& link) : link_(&link) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  /// Cut into messages where there is more than MPI can count.
  void send(const void* data, std::size_t bytes, int destination, int tag);
  void receive(void* data, std::size_t bytes, int source, int tag);
  /// Looks once; true when none is left.
  bool progress() {
    advance(receives_);
    advance(sends_);
    return receives_.empty() && sends_.empty();
  }
  bool receiving() {
    advance(receives_);
    return !receives_.empty();
  }
  bool sending() {
    advance(sends_);
    return !sends_.empty();
  }
  void wait(Wait& wait) {
    while (!progress()) wait.pause();
  }

 private:
  void advance(std::vector<RequestHandle>& requests);

  Link* link_;
  std::vector<RequestHandle> receives_;
  std::vector<RequestHandle> sends_;
};

}  // namespace gradlink::messages
