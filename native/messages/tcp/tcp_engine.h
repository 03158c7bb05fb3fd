// The messages of one process: its connections, and what is sent and awaited on them. Nothing moves
// but in its calls, each of which takes its mutex: who waits looks again and again, as with MPI.
//
// A connection is made when somebody first sends on it. What a rank sends to another goes over one
// connection, so that it arrives in order; what it gets may come over another.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/deadline.h"
#include "core/error.h"
#include "messages/tcp/connection.h"
#include "messages/tcp/handshake.h"
#include "messages/tcp/mailbox.h"
#include "messages/tcp/settings.h"

namespace gradlink::messages::tcp {

/// Another process of the job.
struct Peer {
  Entry entry;
  /// What this process sends on; null: none yet, or none any more.
  Connection* sending = nullptr;
  /// Frames for a connection that is being made.
  std::deque<Outgoing> waiting;
  bool connecting = false;
  /// Handshakes that the other side cut short.
  int refused = 0;
  int connections = 0;
  /// All connections that there were have ended.
  bool gone = false;
  /// Why nothing of it is believed any more; null while it is.
  const char* trouble = nullptr;
};

/// A payload that this process has asked for.
struct Awaited {
  /// Null: its receive was given up, and the bytes are dropped.
  Request* request = nullptr;
  int peer = 0;
  std::size_t bytes = 0;
};

class Engine final : public Frames {
 public:
  explicit Engine(Settings settings);

  // ---- rendezvous.cc

  /// Meets the other processes. Throws timeout that names the missing.
  void meet(double timeoutMs);

  // ---- engine.cc

  /// Says bye to all, once everything is out.
  void close();
  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  const Bytes32& hostOf(int jobRank) const { return peerOf(jobRank).entry.host; }

  /// Whose process has ended, or cannot be reached any more; lowest of `box` above `after`, -1:
  /// none.
  int goneAbove(const Mailbox& box, int after);
  bool isGone(int jobRank) const { return peerOf(jobRank).gone; }
  /// Of one that is gone.
  const char* whyGone(int jobRank) const;

  Mailbox& mailbox(std::uint64_t context) { return mailboxes_[context]; }
  void drop(std::uint64_t context) { mailboxes_.erase(context); }

  // ---- messages.cc

  Request* send(std::uint64_t context, const void* data, std::size_t bytes, int to, int tag);
  Request* receive(std::uint64_t context, void* data, std::size_t bytes, int source, int tag);
  /// A request that is done is freed by who sees it.
  void progress(int waitMs = 0);
  /// Something is on its way out, or a connection is being made.
  bool busy() const;
  void cancel(Request&);
  /// Nobody waits for this send any more, and its data may go.
  void release(Request*);

  /// Numbers of failures, from 1, for who can only return an int.
  int numberOf(const Error&);
  const Error& failure(int number) const {
    return failures_.at(static_cast<std::size_t>(number) - 1);
  }

  std::mutex mutex;

 private:
  // ---- rendezvous.cc

  void listen(const Address&, PortRange ports = {});
  void lead(Deadline);
  void follow(Deadline);
  /// What came of one attempt to reach rank 0; no reason when it answers.
  struct Call {
    std::string reason;
    bool stranger = false;
  };
  Call callMaster(Deadline);
  void sendTable();
  [[noreturn]] void refuseAll(const Error&);
  /// False where it names no places to connect to.
  bool takeTable(const std::vector<std::byte>&);
  std::vector<int> missing() const;
  /// Of a process that says who it is.
  void introduce(const Hello&, const Address& from);

  // ---- engine.cc

  bool allows(const Connection&, const FrameHead&) const override;
  Landing land(Connection&, const FrameHead&) override;
  void landed(Connection&, const FrameHead&, Landing) override;
  void sent(Request&) override;

  Peer& peerOf(int jobRank) { return peers_[static_cast<std::size_t>(jobRank)]; }
  const Peer& peerOf(int jobRank) const { return peers_[static_cast<std::size_t>(jobRank)]; }
  void push(int to, Outgoing);
  void begin(int to);
  void take(Handshake&);
  void watch(int fd, bool writes, bool fresh);
  void welcome();
  bool makeRoom(std::size_t most);
  void outOfFiles(int errnoValue);
  void shake(int fd);
  void serve(Connection&);
  void end(Connection&);
  /// Of a rank that has sent what no rank sends nothing is believed any more.
  void expel(int rank, const char* why);
  /// Nothing will go to it any more, and nothing come.
  void lose(Peer&, int rank);
  void finish(Request&, std::size_t bytes);
  Hello hello(int to) const;

  // ---- messages.cc

  void deliverToSelf(std::uint64_t context, const void* data, std::size_t bytes, int tag);
  void arrived(int peer, const FrameHead&, Landing);
  void accepted(int peer, const FrameHead&);
  void acceptOffer(Request&, int peer, std::uint64_t id, std::size_t bytes);
  void fill(Request&, const std::byte* data, std::size_t bytes);

  const Settings settings_;
  const OwnAddress own_;
  const Bytes32 host_;
  std::vector<Peer> peers_;
  Fd epoll_;
  Fd listener_;
  int listenerPort_ = 0;
  std::unordered_map<int, std::unique_ptr<Handshake>> handshakes_;
  /// Connections to this process that have ended, or were pushed out, without a proof.
  std::uint64_t unproven_ = 0;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::uint64_t, Mailbox> mailboxes_;
  std::uint64_t lastId_ = 0;
  /// Offers that are not accepted yet, and receives whose payload is on its way.
  std::unordered_map<std::uint64_t, Request*> offers_;
  std::unordered_map<std::uint64_t, Awaited> awaited_;
  std::vector<Error> failures_;
  Address master_;
  /// What rank 0 said at the rendezvous.
  bool met_ = false;
  std::string refusal_;
  int refusedRank_ = -1;
  ErrorCode refusedCode_ = ErrorCode::timeout;
};

}  // namespace gradlink::messages::tcp
