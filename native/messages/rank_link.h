// One rank on one MPI communicator: sending, receiving, waiting with deadlines, and control
// messages between ranks: a rank has left, waits, or has failed.
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
  /// For tests with another MPI than the loaded one.
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
  /// Waits; on failure the request is given up first.
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

  /// Ends requests after a failure. Receives are cancelled, so their memory is free afterwards;
  /// sends may stay with MPI, which only reads.
  void giveUp(std::vector<RequestHandle>& receives, std::vector<RequestHandle>& sends);
  void giveUpReceive(RequestHandle request);

  // ---- calls that all ranks make: numbered from 1

  std::uint64_t call() const { return call_; }
  void beginCall() { ++call_; }

  // ---- conditions that end a wait

  /// Handles control messages of the other ranks.
  void listen();
  /// Fails with another link, which outlives this one.
  void follow(Link* above) { above_ = above; }
  /// Throws the error that ended the communicator.
  void check(const char* op);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Ends the communicator on all ranks, unless it has ended.
  void failAll(ErrorCode code, int rank, const std::string& op, const std::string& message);
  /// failAll(), then throws the first error.
  [[noreturn]] void end(ErrorCode code, int rank, const char* op, const std::string& message);
  /// A rank that left in good order before the current call, or -1.
  int leftBeforeCall() const;
  bool allLeft() const { return size_ > 1 && goodbyes_ == size_ - 1; }
  bool hasLeft(int rank) const { return left_[static_cast<std::size_t>(rank)] != kHere; }
  /// Tells the others that this rank waits in the current call; once a call.
  void announceWaiting();
  /// Ranks that have not announced that they came to the current call.
  std::vector<int> missing() const;

  /// Leaves in good order. `clean`: no request of this communicator is open.
  void close(bool clean);
  /// Own calls end with closed, those of peers with peerLost. Thread-safe.
  void leave();

 private:
  static constexpr std::uint64_t kHere = ~std::uint64_t{0};

  void hear();
  void notice();
  void sendToAll(const void* data, std::size_t bytes, int tag);
  void setFailure(Error error);

  const Shim& mpi_;
  CommHandle comm_;
  Link* above_ = nullptr;
  int rank_ = 0;
  int size_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t announced_ = 0;
  /// Each rank's number of calls when it left, and the last call it announced to wait in.
  std::vector<std::uint64_t> left_;
  std::vector<std::uint64_t> waiting_;
  int goodbyes_ = 0;
  bool closed_ = false;
  bool clean_ = true;

  std::mutex mutex_;
  std::atomic<bool> ended_{false};
  std::optional<Error> failure_;
  std::vector<RequestHandle> controlSends_;
  std::vector<std::unique_ptr<std::byte[]>> controlData_;
};

/// The wait of one call: its deadline and the awaited rank.
class Wait {
 public:
  enum class Kind {
    agreement,  // a rank that left before this call will never come
    data,       // all ranks have come
    message,    // of one peer; a failure changes nothing
  };

  /// `name`: the caller's name for the call, or null.
  Wait(Link& link, const char* op, double timeoutMs, Kind kind, const char* name = nullptr)
      : link_(link), op_(op), name_(name), timeoutMs_(timeoutMs), kind_(kind) {}

  const char* op() const { return op_; }
  const char* name() const { return name_; }
  /// For exchanging names, within deadlineOfNames().
  Wait& forNames();
  Wait& as(Kind kind) {
    kind_ = kind;
    return *this;
  }
  /// The awaited rank, or kAnySource.
  Wait& on(int rank) {
    awaited_ = rank;
    return *this;
  }
  /// Call after a look that found nothing. Throws if the wait must end.
  void pause() {
    if (pause_.after()) [[unlikely]]
      look();
  }
  void came() { pause_.reset(); }

 private:
  void start();
  void look();
  [[noreturn]] void timeout();

  Link& link_;
  const char* op_;
  const char* name_;
  double timeoutMs_;
  Kind kind_;
  int awaited_ = -1;
  /// The awaited event has become impossible since the last look.
  bool doomed_ = false;
  bool started_ = false;
  Deadline deadline_ = Deadline::never();
  Deadline announce_ = Deadline::never();
  Pause pause_;
};

/// Requests of one call that are waited for together; the destructor gives up the rest.
class Batch {
 public:
  explicit Batch(Link& link) : link_(&link) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  /// Splits what MPI cannot count.
  void send(const void* data, std::size_t bytes, int destination, int tag);
  void receive(void* data, std::size_t bytes, int source, int tag);
  /// Looks once; true if none is left.
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
