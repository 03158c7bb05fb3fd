// The first words on a connection, by which both sides prove that they know the job's secret.
// Bounded in bytes, and in number by who holds it.
#pragma once

#include <string>

#include "messages/tcp/seal.h"

namespace gradlink::messages::tcp {

class Handshake {
 public:
  /// Who we are, to whom we connect.
  Handshake(Fd socket, const Hello& own, std::string secret);
  /// Who has connected to `rank` of `size`.
  Handshake(Fd accepted, int rank, int size, bool sealsAll, std::string secret);

  enum class Status { underway, done, failed };
  /// Reads and writes what it can. A failed one is closed by its end.
  Status go();
  /// Whether it waits until it may write.
  bool writes() const { return connecting_ || sent_ < out_.size(); }
  /// Whether the other side was there at all.
  bool answered() const { return !connecting_; }
  /// The greater, the younger.
  std::uint64_t number() const { return number_; }

  Side side() const { return side_; }
  /// Of the connecting side, once it is known.
  const Hello& hello() const { return hello_; }
  /// Of a handshake that is done.
  Seals seals() const { return sealsOf(secret_, side_, greeting_, hello_); }
  const Fd& socket() const { return socket_; }
  Fd take() { return std::move(socket_); }

 private:
  /// False where it cannot be written any more.
  bool write();
  /// True once all of `bytes` have come; `failed_` where they never will.
  bool read(void* to, std::size_t bytes);
  template <class Message>
  void put(const Message& message) {
    out_.append(reinterpret_cast<const char*>(&message), sizeof(message));
  }
  Status fail() {
    failed_ = true;
    return Status::failed;
  }
  Bytes32 proofOf(Side side) const { return keyOf(secret_, "proof", side, greeting_, hello_); }
  Status goConnecting();
  Status goAccepting();

  Fd socket_;
  const Side side_;
  const std::string secret_;
  const std::uint64_t number_;
  Greeting greeting_;
  Hello hello_;
  int rank_ = 0;
  int size_ = 0;
  bool connecting_ = false;
  bool failed_ = false;
  /// Messages that have come.
  int come_ = 0;
  std::string in_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace gradlink::messages::tcp
