#include "mpi/tcp/handshake.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gradlink::mpi::tcp {
namespace {

constexpr double kMostMs = 5000;

}  // namespace

Handshake::Handshake(Fd socket, const Hello& own, std::string secret)
    : socket_(std::move(socket)),
      side_(Side::connecting),
      secret_(std::move(secret)),
      hello_(own),
      connecting_(true),
      deadline_(Deadline::in(kMostMs)) {
  hello_.nonce = newNonce();
  put(hello_);
}

Handshake::Handshake(Fd accepted, int rank, int size, std::string secret)
    : socket_(std::move(accepted)),
      side_(Side::accepting),
      secret_(std::move(secret)),
      rank_(rank),
      size_(size),
      deadline_(Deadline::in(kMostMs)) {
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
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
  if (!write()) return fail();
  if (come_ == 0) {
    if (!read(&challenge_, sizeof(challenge_))) return failed_ ? fail() : Status::underway;
    const Bytes32 expected = proofOf(secret_, Side::accepting, hello_, challenge_.nonce);
    if (!sameBytes(expected, challenge_.proof)) return fail();
    put(Proof{proofOf(secret_, Side::connecting, hello_, challenge_.nonce)});
    if (!write()) return fail();
  }
  return sent_ == out_.size() ? Status::done : Status::underway;
}

Handshake::Status Handshake::goAccepting() {
  if (come_ == 0) {
    if (!read(&hello_, sizeof(hello_))) return failed_ ? fail() : Status::underway;
    const bool fits = hello_.magic == kMagic && hello_.rank >= 0 && hello_.rank != rank_ &&
                      hello_.rank < hello_.size && hello_.peer == rank_ &&
                      hello_.port >= (hello_.rank == 0 ? 0 : 1) && hello_.port <= kMostPort;
    if (!fits || (rank_ != 0 && hello_.size != size_)) return fail();
    challenge_.nonce = newNonce();
    challenge_.proof = proofOf(secret_, Side::accepting, hello_, challenge_.nonce);
    put(challenge_);
  }
  if (!write()) return fail();
  if (come_ == 1) {
    Proof proof;
    if (!read(&proof, sizeof(proof))) return failed_ ? fail() : Status::underway;
    const Bytes32 expected = proofOf(secret_, Side::connecting, hello_, challenge_.nonce);
    if (!sameBytes(expected, proof.proof)) return fail();
  }
  return Status::done;
}

Handshake::Status Handshake::go() {
  if (failed_) return Status::failed;
  return side_ == Side::connecting ? goConnecting() : goAccepting();
}

}  // namespace gradlink::mpi::tcp
