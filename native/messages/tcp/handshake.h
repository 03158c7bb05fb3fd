// The start of a connection: both sides prove that they know the job's secret, in a few bytes.
#pragma once

#include <string>

#include "messages/tcp/seal.h"

namespace gradlink::messages::tcp {

class Handshake {
 public:
  /// The connecting side: our hello and the job's secret.
  Handshake(Fd socket, const Hello& own, std::string secret);
  /// The accepting side, `rank` of `size`.
  Handshake(Fd accepted, int rank, int size, bool sealsAll, std::string secret);

  enum class Status { underway, done, failed };
  /// Reads and writes what it can. A failed handshake is closed by its destructor.
  Status go();
  /// Whether it waits for the socket to be writable.
  bool writes() const { return connecting_ || sent_ < out_.size(); }
  bool answered() const { return !connecting_; }
  /// Grows with each handshake.
  std::uint64_t number() const { return number_; }

  Side side() const { return side_; }
  /// The connecting side's, once received.
  const Hello& hello() const { return hello_; }
  /// Of a completed handshake.
  Seals seals() const { return sealsOf(secret_, side_, greeting_, hello_); }
  const Fd& socket() const { return socket_; }
  Fd take() { return std::move(socket_); }

 private:
  /// False after a write error.
  bool write();
  /// True once all of `bytes` have come; sets `failed_` if they cannot.
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
  int come_ = 0;
  std::string in_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace gradlink::messages::tcp
