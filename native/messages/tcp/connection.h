// An open connection to another rank: frames in and out. Frames decides where their bytes go.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "messages/tcp/seal.h"

namespace gradlink::messages::tcp {

struct Request;
class Connection;

/// Why a connection ends after an invalid tag.
inline constexpr const char* kForged =
    "a frame on its connection was not authentic: altered, repeated, omitted or injected in "
    "transit";

/// Why it ends if its host is unreachable.
inline constexpr const char* kSilent = "its host does not answer any more";

/// Where the bytes of a frame go: nowhere, to a request's buffer, or to own memory.
struct Landing {
  std::byte* to = nullptr;
  Request* request = nullptr;
  std::unique_ptr<std::byte[]> own;
};

class Frames {
 public:
  /// Whether a rank may send this now; checked before a head is used.
  virtual bool allows(const Connection&, const FrameHead&) const = 0;
  virtual Landing land(Connection&, const FrameHead&) = 0;
  /// Its bytes have come, too.
  virtual void landed(Connection&, const FrameHead&, Landing) = 0;
  /// All bytes of a request have been passed to the system.
  virtual void sent(Request&) = 0;

 protected:
  ~Frames() = default;
};

struct Outgoing {
  FrameHead head;
  const std::byte* data = nullptr;
  /// Completed once sent; may be null.
  Request* request = nullptr;
  /// The data, if nobody else keeps them.
  std::vector<std::byte> own;

  std::size_t dataBytes() const { return data != nullptr ? head.bytes : 0; }
  /// Copies the data because its request ends early.
  void keepOwn();
};

class Connection {
 public:
  Connection(Fd socket, int peer, Frames& frames, const Seals& seals)
      : socket_(std::move(socket)), peer_(peer), frames_(frames), seals_(seals) {}

  int peer() const { return peer_; }
  const Fd& socket() const { return socket_; }
  /// Nothing more will come: the other side has said bye, or is gone.
  bool ended() const { return ended_; }
  bool saidBye() const { return bye_; }
  /// Why it ended, unless the other side ended it; else null.
  const char* trouble() const { return trouble_; }
  void refuse(const char* why);
  bool idle() const { return queue_.empty(); }

  void push(Outgoing outgoing);
  void flush();
  /// Reads what is there, but stops after `most` bytes so no peer starves the others.
  void read(std::size_t most = kMostAtOnceRead);
  /// For a request that ends early: drops its incoming bytes and copies the outgoing ones.
  void forget(const Request&);
  std::vector<Request*> unsent();

 private:
  static constexpr std::size_t kMostAtOnceRead = std::size_t{4} << 20;

  /// A frame in transfer and its tags.
  struct Sealed {
    Outgoing frame;
    Tag headTag;
    Tag dataTag;
    Poly1305 data;
    /// Bytes of the data that the tag covers so far.
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
  /// Bytes of the first in the queue, head and tags included.
  std::size_t written_ = 0;

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool inFrame_ = false;
  FrameHead head_;
  Landing landing_;
  Poly1305 coming_;
  std::size_t got_ = 0;
};

}  // namespace gradlink::messages::tcp
