#include "mpi/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gradlink::mpi::tcp {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
/// Of one look at a connection.
constexpr std::size_t kMostAtOnceRead = std::size_t{4} << 20;
constexpr std::size_t kMostPieces = 16;

}  // namespace

void Connection::push(Outgoing outgoing) {
  queue_.push_back(std::move(outgoing));
  if (queue_.size() == 1) flush();
}

void Connection::flush() {
  while (!queue_.empty() && !ended_) {
    std::array<iovec, kMostPieces> pieces{};
    std::size_t count = 0;
    std::size_t skip = written_;
    const auto add = [&](const void* data, std::size_t bytes) {
      if (skip >= bytes) {
        skip -= bytes;
        return;
      }
      // writev does not write to it.
      auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(data)) + skip;
      pieces[count++] = {at, bytes - skip};
      skip = 0;
    };
    for (const Outgoing& each : queue_) {
      if (count + 2 > kMostPieces) break;
      add(&each.head, sizeof(each.head));
      if (each.data != nullptr) add(each.data, each.head.bytes);
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t put = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (put < 0) {
      // Reading tells how it ended, after what still comes.
      if (!mayComeLater(errno)) shutdown(socket_.get(), SHUT_WR);
      return;
    }
    written_ += static_cast<std::size_t>(put);
    while (!queue_.empty()) {
      const Outgoing& first = queue_.front();
      const std::size_t bytes = sizeof(first.head) + (first.data != nullptr ? first.head.bytes : 0);
      if (written_ < bytes) break;
      written_ -= bytes;
      Request* const request = first.request;
      queue_.pop_front();
      if (request != nullptr) frames_.sent(*request);
    }
  }
}

bool Connection::parse() {
  if (end_ - begin_ < sizeof(FrameHead)) return false;
  std::memcpy(&head_, buffer_.data() + begin_, sizeof(head_));
  begin_ += sizeof(head_);
  if (bye_ || !frames_.allows(*this, head_)) {
    refuse();
    return false;
  }
  if (head_.kind == FrameKind::bye) {
    bye_ = true;
    return true;
  }
  landing_ = frames_.land(*this, head_);
  got_ = 0;
  inFrame_ = true;
  return true;
}

/// So many more bytes of the frame are where they belong.
void Connection::accept(std::size_t bytes) {
  got_ += bytes;
  // An offer and an acceptance speak of bytes that come later.
  const bool follows = head_.kind != FrameKind::offer && head_.kind != FrameKind::accept;
  if (follows && got_ < head_.bytes) return;
  inFrame_ = false;
  frames_.landed(*this, head_, std::exchange(landing_, {}));
}

void Connection::read() {
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  for (std::size_t taken = 0; taken < kMostAtOnceRead && !ended_;) {
    // What is in the buffer.
    for (;;) {
      if (ended_) return;
      if (!inFrame_) {
        if (!parse()) break;
        if (!inFrame_) continue;
        if (head_.kind == FrameKind::offer || head_.kind == FrameKind::accept || head_.bytes == 0) {
          accept(0);
          continue;
        }
      }
      const std::size_t some = std::min(end_ - begin_, head_.bytes - got_);
      if (some == 0) break;
      if (landing_.to != nullptr) {
        std::memcpy(landing_.to + got_, buffer_.data() + begin_, some);
      }
      begin_ += some;
      accept(some);
    }
    if (ended_) return;
    // Long payloads go straight where they belong.
    const std::size_t missing = inFrame_ ? head_.bytes - got_ : 0;
    const bool straight = missing >= kBufferBytes && landing_.to != nullptr;
    if (!straight) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t got = straight
                            ? recv(socket_.get(), landing_.to + got_, missing, 0)
                            : recv(socket_.get(), buffer_.data() + end_, kBufferBytes - end_, 0);
    if (got < 0 && mayComeLater(errno)) return;
    if (got <= 0) {
      ended_ = true;
      return;
    }
    taken += static_cast<std::size_t>(got);
    if (straight) {
      accept(static_cast<std::size_t>(got));
    } else {
      end_ += static_cast<std::size_t>(got);
    }
  }
}

void Connection::forget(const Request& request) {
  if (landing_.request == &request) landing_ = {};
  for (Outgoing& each : queue_) {
    if (each.request != &request) continue;
    each.request = nullptr;
    each.own.assign(each.data, each.data + each.head.bytes);
    each.data = each.own.data();
  }
}

std::vector<Request*> Connection::unsent() {
  std::vector<Request*> requests;
  for (const Outgoing& each : queue_) {
    if (each.request != nullptr) requests.push_back(each.request);
  }
  queue_.clear();
  return requests;
}

}  // namespace gradlink::mpi::tcp
