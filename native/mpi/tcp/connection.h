// An open connection to another rank: frames that go and frames that come. It decides nothing:
// where the bytes of a frame belong is asked of its Frames.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "mpi/tcp/frames.h"

namespace gradlink::mpi::tcp {

struct Request;
class Connection;

/// Where the bytes of a frame go: nowhere, to a request's place, or to memory of their own.
struct Landing {
  std::byte* to = nullptr;
  Request* request = nullptr;
  std::unique_ptr<std::byte[]> own;
};

class Frames {
 public:
  /// Whether a rank may send this now. Nothing of a head is used before.
  virtual bool allows(const Connection&, const FrameHead&) const = 0;
  /// A head has come.
  virtual Landing land(Connection&, const FrameHead&) = 0;
  /// Its bytes, too.
  virtual void landed(Connection&, const FrameHead&, Landing) = 0;
  /// All of a request's bytes are with the system.
  virtual void sent(Request&) = 0;

 protected:
  ~Frames() = default;
};

struct Outgoing {
  FrameHead head;
  const std::byte* data = nullptr;
  /// Told when it is out; may be null.
  Request* request = nullptr;
  /// The data, where nobody else keeps them.
  std::vector<std::byte> own;
};

class Connection {
 public:
  Connection(Fd socket, int peer, Frames& frames)
      : socket_(std::move(socket)), peer_(peer), frames_(frames) {}

  int peer() const { return peer_; }
  const Fd& socket() const { return socket_; }
  /// Nothing comes any more: the other side has said bye, or is gone.
  bool ended() const { return ended_; }
  bool saidBye() const { return bye_; }
  /// Ended because of what came: no rank sends it.
  bool broken() const { return broken_; }
  void refuse() { ended_ = broken_ = true; }
  bool idle() const { return queue_.empty(); }

  void push(Outgoing outgoing);
  /// Writes what the system takes.
  void flush();
  /// Reads what is there, up to a bound, so that no peer starves the others.
  void read();
  /// What is under way for a request that ends early: bytes to come are dropped, bytes to go are
  /// kept.
  void forget(const Request&);
  /// Requests that will never be sent.
  std::vector<Request*> unsent();

 private:
  void accept(std::size_t bytes);
  bool parse();

  Fd socket_;
  const int peer_;
  Frames& frames_;
  bool ended_ = false;
  bool bye_ = false;
  bool broken_ = false;

  std::deque<Outgoing> queue_;
  /// Of the first of the queue, head included.
  std::size_t written_ = 0;

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  /// The frame whose bytes are coming.
  bool inFrame_ = false;
  FrameHead head_;
  Landing landing_;
  std::size_t got_ = 0;
};

}  // namespace gradlink::mpi::tcp
