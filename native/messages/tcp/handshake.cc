#include "messages/tcp/handshake.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/memory/same_bytes.h"

namespace gradlink::messages::tcp {
namespace {

std::atomic<std::uint64_t> handshakes{0};

}  // namespace

Handshake::Handshake(Fd socket, const Hello& own, std::string secret)
    : socket_(std::move(socket)),
      side_(Side::connecting),
      secret_(std::move(secret)),
      number_(++handshakes),
      hello_(own),
      connecting_(true) {
  hello_.nonce = newNonce();
}

Handshake::Handshake(Fd accepted, int rank, int size, bool sealsAll, std::string secret)
    : socket_(std::move(accepted)),
      side_(Side::accepting),
      secret_(std::move(secret)),
      number_(++handshakes),
      rank_(rank),
      size_(size) {
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  greeting_.sealsAll = sealsAll ? 1 : 0;
  greeting_.nonce = newNonce();
  put(greeting_);
}

bool Handshake::write() {
  while (sent_ < out_.size()) {
    const ssize_t put = send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (put < 0) return mayComeLater(errno);
    sent_ += static_cast<std::size_t>(put);
  }
  return true;
}

bool Handshake::read(void* to, std::size_t bytes) {
  while (in_.size() < bytes) {
    char some[sizeof(Hello)];
    const ssize_t got = recv(socket_.get(), some, std::min(sizeof(some), bytes - in_.size()), 0);
    if (got <= 0) {
      if (got == 0 || !mayComeLater(errno)) failed_ = true;
      return false;
    }
    in_.append(some, static_cast<std::size_t>(got));
  }
  std::memcpy(to, in_.data(), bytes);
  in_.clear();
  ++come_;
  return true;
}

Handshake::Status Handshake::goConnecting() {
  if (connecting_) {
    pollfd look{socket_.get(), POLLOUT, 0};
    if (poll(&look, 1, 0) == 0) return Status::underway;
    if (connectError(socket_) != 0) return fail();
    connecting_ = false;
  }
  if (come_ == 0) {
    if (!read(&greeting_, sizeof(greeting_))) return failed_ ? fail() : Status::underway;
    if (greeting_.magic != kMagic) return fail();
    put(hello_);
    put(proofOf(Side::connecting));
  }
  if (!write()) return fail();
  Bytes32 proof;
  if (!read(&proof, sizeof(proof))) return failed_ ? fail() : Status::underway;
  return sameBytes(proofOf(Side::accepting), proof) ? Status::done : fail();
}

Handshake::Status Handshake::goAccepting() {
  if (!write()) return fail();
  if (come_ == 0) {
    if (!read(&hello_, sizeof(hello_))) return failed_ ? fail() : Status::underway;
    const bool fits = hello_.magic == kMagic && hello_.rank >= 0 && hello_.rank != rank_ &&
                      hello_.rank < hello_.size && hello_.peer == rank_ &&
                      hello_.port >= (hello_.rank == 0 ? 0 : 1);
    if (!fits || (rank_ != 0 && hello_.size != size_)) return fail();
  }
  if (come_ == 1) {
    Bytes32 proof;
    if (!read(&proof, sizeof(proof))) return failed_ ? fail() : Status::underway;
    if (!sameBytes(proofOf(Side::connecting), proof)) return fail();
    put(proofOf(Side::accepting));
    if (!write()) return fail();
  }
  return sent_ == out_.size() ? Status::done : Status::underway;
}

Handshake::Status Handshake::go() {
  if (failed_) return Status::failed;
  return side_ == Side::connecting ? goConnecting() : goAccepting();
}

}  // namespace gradlink::messages::tcp
