// The messages of one process: its connections and pending requests. Progress happens only in
// calls, under its mutex: waiting means polling, as with MPI.
//
// A connection is made at the first send. A rank's messages to another use one connection, so they
// arrive in order; those of the other direction may use another.
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

struct Peer {
  Entry entry;
  /// The connection for sends, or null.
  Connection* sending = nullptr;
  /// Frames for a connection that is being made.
  std::deque<Outgoing> waiting;
  bool connecting = false;
  /// Handshakes that the other side cut short.
  int refused = 0;
  int connections = 0;
  /// All its connections have ended.
  bool gone = false;
  /// Why its messages are no longer accepted, or null.
  const char* trouble = nullptr;
};

struct Awaited {
  /// Null: its receive was given up, and the bytes are dropped.
  Request* request = nullptr;
  int peer = 0;
  std::size_t bytes = 0;
};

class Engine final : public Frames {
 public:
  explicit Engine(Settings settings);

  // ---- tcp_rendezvous.cc

  /// Meets the other processes. Throws a timeout that names the missing.
  void meet(double timeoutMs);

  // ---- tcp_engine.cc

  /// Says bye to all, once everything is sent.
  void close();
  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  const Bytes32& hostOf(int jobRank) const { return peerOf(jobRank).entry.host; }

  /// The lowest rank of `box` above `after` whose process has ended or is unreachable, or -1.
  int goneAbove(const Mailbox& box, int after);
  bool isGone(int jobRank) const { return peerOf(jobRank).gone; }
  const char* whyGone(int jobRank) const;

  Mailbox& mailbox(std::uint64_t context) { return mailboxes_[context]; }
  void drop(std::uint64_t context) { mailboxes_.erase(context); }

  // ---- tcp_messages.cc

  Request* send(std::uint64_t context, const void* data, std::size_t bytes, int to, int tag);
  Request* receive(std::uint64_t context, void* data, std::size_t bytes, int source, int tag);
  /// The caller frees completed requests.
  void progress(int waitMs = 0);
  /// Whether data is being sent or a connection is being made.
  bool busy() const;
  void cancel(Request&);
  /// Gives up a send; its data may change.
  void release(Request*);

  /// A number for an error, from 1 on, for callers that return an int.
  int numberOf(const Error&);
  const Error& failure(int number) const {
    return failures_.at(static_cast<std::size_t>(number) - 1);
  }

  std::mutex mutex;

 private:
  // ---- tcp_rendezvous.cc

  void listen(const Address&, PortRange ports = {});
  void lead(Deadline);
  void follow(Deadline);
  /// The result of one attempt to reach rank 0; an empty reason if it answers.
  struct Call {
    std::string reason;
    bool stranger = false;
  };
  Call callMaster(Deadline);
  void sendTable();
  [[noreturn]] void refuseAll(const Error&);
  /// False if the table is invalid.
  bool takeTable(const std::vector<std::byte>&);
  std::vector<int> missing() const;
  /// Registers a process that has introduced itself.
  void introduce(const Hello&, const Address& from);

  // ---- tcp_engine.cc

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
  /// Rejects a rank that has sent something invalid.
  void expel(int rank, const char* why);
  void lose(Peer&, int rank);
  void finish(Request&, std::size_t bytes);
  Hello hello(int to) const;

  // ---- tcp_messages.cc

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
  /// Incoming connections that ended or were dropped without a proof.
  std::uint64_t unproven_ = 0;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::unordered_map<std::uint64_t, Mailbox> mailboxes_;
  std::uint64_t lastId_ = 0;
  /// Offers without an acceptance, and receives whose payload is coming.
  std::unordered_map<std::uint64_t, Request*> offers_;
  std::unordered_map<std::uint64_t, Awaited> awaited_;
  std::vector<Error> failures_;
  Address master_;
  /// Rank 0's answer at the rendezvous.
  bool met_ = false;
  std::string refusal_;
  int refusedRank_ = -1;
  ErrorCode refusedCode_ = ErrorCode::timeout;
};

}  // namespace gradlink::messages::tcp
