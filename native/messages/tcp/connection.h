// An open connection to another rank: frames that go and frames that come. It decides nothing:
// where the bytes of a frame belong is asked of its Frames.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "messages/tcp/seal.h"

namespace gradlink::messages::tcp {

struct Request;
class Connection;

/// What a connection ends with where a tag is not right.
inline constexpr const char* kForged =
    "a frame on its connection was not authentic: altered, repeated, left out or put in on the way";

/// Where nothing comes from its host any more, not even that the connection has ended.
inline constexpr const char* kSilent = "its host does not answer any more";

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

  std::size_t dataBytes() const { return data != nullptr ? head.bytes : 0; }
  /// Its request ends early, and the data go with it.
  void keepOwn();
};

class Connection {
 public:
  Connection(Fd socket, int peer, Frames& frames, const Seals& seals)
      : socket_(std::move(socket)), peer_(peer), frames_(frames), seals_(seals) {}

  int peer() const { return peer_; }
  const Fd& socket() const { return socket_; }
  /// Nothing comes any more: the other side has said bye, or is gone.
  bool ended() const { return ended_; }
  bool saidBye() const { return bye_; }
  /// Why it ended, but for the other side's end; null where it did not.
  const char* trouble() const { return trouble_; }
  void refuse(const char* why);
  bool idle() const { return queue_.empty(); }

  void push(Outgoing outgoing);
  /// Writes what the system takes.
  void flush();
  /// Reads what is there, and no more once `most` bytes have come, so that no peer starves the
  /// others.
  void read(std::size_t most = kMostAtOnceRead);
  /// What is under way for a request that ends early: bytes to come are dropped, bytes to go are
  /// kept.
  void forget(const Request&);
  /// Requests that will never be sent.
  std::vector<Request*> unsent();

 private:
  static constexpr std::size_t kMostAtOnceRead = std::size_t{4} << 20;

  /// A frame that is under way, with its tags.
  struct Sealed {
    Outgoing frame;
    Tag headTag;
    Tag dataTag;
    Poly1305 data;
    /// Bytes of the data that `data` has.
    std::size_t read = 0;
  };
  std::size_t bytesOf(const Sealed&) const;
  void seal(Sealed&, std::size_t upTo) const;
  bool parse();
  std::size_t follow() const;
  void accept(const std::byte* data, std::size_t bytes);
  bool complete();
  void digest();

  Fd socket_;
  const int peer_;
  Frames& frames_;
  bool ended_ = false;
  bool bye_ = false;
  const char* trouble_ = nullptr;
  Seals seals_;

  std::deque<Sealed> queue_;
  /// Of the first of the queue, head and tags included.
  std::size_t written_ = 0;

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  /// The frame whose bytes are coming.
  bool inFrame_ = false;
  FrameHead head_;
  Landing landing_;
  Poly1305 coming_;
  std::size_t got_ = 0;
};

}  // namespace gradlink::messages::tcp
