#include "messages/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "core/memory/same_bytes.h"

namespace gradlink::messages::tcp {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kMostPieces = 16;
/// Part of a payload that is tagged before it is sent, so it is still partly cached.
constexpr std::size_t kTaggedAtOnce = std::size_t{256} << 10;

constexpr const char* kImpossible = "it sent an invalid frame";

}  // namespace

void Outgoing::keepOwn() {
  request = nullptr;
  own.assign(data, data + dataBytes());
  if (data != nullptr) data = own.data();
}

void Connection::refuse(const char* why) {
  ended_ = true;
  trouble_ = why;
}

std::size_t Connection::bytesOf(const Sealed& one) const {
  const std::size_t data = one.frame.dataBytes();
  return sizeof(FrameHead) + sizeof(Tag) + data + (seals_.cover(data) ? sizeof(Tag) : 0);
}

void Connection::seal(Sealed& one, std::size_t upTo) const {
  if (one.read >= upTo) return;
  one.data.update(one.frame.data + one.read, upTo - one.read);
  one.read = upTo;
  if (upTo == one.frame.dataBytes()) one.dataTag = one.data.finish();
}

void Connection::push(Outgoing outgoing) {
  const Seal::Frame tags = seals_.out.next(outgoing.head);
  queue_.push_back(
      {.frame = std::move(outgoing), .headTag = tags.head, .dataTag = {}, .data = tags.payload});
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
    for (Sealed& one : queue_) {
      if (count + 4 > kMostPieces) break;
      add(&one.frame.head, sizeof(FrameHead));
      add(&one.headTag, sizeof(Tag));
      const std::size_t bytes = one.frame.dataBytes();
      if (!seals_.cover(bytes)) {
        add(one.frame.data, bytes);
        continue;
      }
      const std::size_t now = std::min(bytes, std::min(skip, bytes) + kTaggedAtOnce);
      seal(one, now);
      add(one.frame.data, now);
      if (now < bytes) break;
      add(&one.dataTag, sizeof(Tag));
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t put = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (put < 0) {
      // Reading reports how it ended, after the remaining data.
      if (!mayComeLater(errno)) shutdown(socket_.get(), SHUT_WR);
      return;
    }
    written_ += static_cast<std::size_t>(put);
    while (!queue_.empty() && written_ >= bytesOf(queue_.front())) {
      written_ -= bytesOf(queue_.front());
      Request* const request = queue_.front().frame.request;
      queue_.pop_front();
      if (request != nullptr) frames_.sent(*request);
    }
  }
}

bool Connection::parse() {
  Tag tag;
  if (end_ - begin_ < sizeof(head_) + sizeof(tag)) return false;
  std::memcpy(&head_, buffer_.data() + begin_, sizeof(head_));
  std::memcpy(&tag, buffer_.data() + begin_ + sizeof(head_), sizeof(tag));
  begin_ += sizeof(head_) + sizeof(tag);
  const Seal::Frame expected = seals_.in.next(head_);
  if (!sameBytes(expected.head, tag)) {
    refuse(kForged);
    return false;
  }
  if (bye_ || !frames_.allows(*this, head_)) {
    refuse(kImpossible);
    return false;
  }
  if (head_.kind == FrameKind::bye) {
    bye_ = true;
    return true;
  }
  landing_ = frames_.land(*this, head_);
  coming_ = expected.payload;
  got_ = 0;
  inFrame_ = true;
  return true;
}

/// The bytes that follow the head. Offers and acceptances only announce bytes that come later.
std::size_t Connection::follow() const {
  const bool speaks = head_.kind == FrameKind::offer || head_.kind == FrameKind::accept;
  return speaks ? 0 : head_.bytes;
}

/// Accounts for `bytes` bytes of the frame, stored and read from `data`.
void Connection::accept(const std::byte* data, std::size_t bytes) {
  got_ += bytes;
  if (seals_.cover(follow())) coming_.update(data, bytes);
}

/// Hands over a complete frame and its tag; false if more must come.
bool Connection::complete() {
  if (got_ < follow()) return false;
  if (seals_.cover(follow())) {
    Tag tag;
    if (end_ - begin_ < sizeof(tag)) return false;
    std::memcpy(&tag, buffer_.data() + begin_, sizeof(tag));
    begin_ += sizeof(tag);
    if (!sameBytes(coming_.finish(), tag)) {
      refuse(kForged);
      return false;
    }
  }
  inFrame_ = false;
  frames_.landed(*this, head_, std::exchange(landing_, {}));
  return true;
}

void Connection::digest() {
  while (!ended_) {
    if (!inFrame_ && !parse()) return;
    if (!inFrame_) continue;
    const std::size_t some = std::min(end_ - begin_, follow() - got_);
    if (some > 0) {
      const std::byte* const from = buffer_.data() + begin_;
      if (landing_.to != nullptr) copyBytes(landing_.to + got_, from, some);
      begin_ += some;
      accept(from, some);
    }
    if (!complete()) return;
  }
}

void Connection::read(std::size_t most) {
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  for (std::size_t taken = 0; taken < most;) {
    digest();
    if (ended_) return;
    // Long payloads are read to their destination directly.
    const std::size_t missing = inFrame_ ? follow() - got_ : 0;
    const bool straight = missing >= kBufferBytes && landing_.to != nullptr;
    if (!straight) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    std::byte* const to = straight ? landing_.to + got_ : buffer_.data() + end_;
    const ssize_t got = recv(socket_.get(), to, straight ? missing : kBufferBytes - end_, 0);
    if (got < 0 && mayComeLater(errno)) return;
    if (got <= 0) {
      const bool silent =
          got < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH);
      if (silent) refuse(kSilent);
      ended_ = true;
      return;
    }
    const auto bytes = static_cast<std::size_t>(got);
    taken += bytes;
    if (straight) {
      accept(to, bytes);
    } else {
      end_ += bytes;
    }
  }
  // Bytes in the buffer raise no event.
  digest();
}

void Connection::forget(const Request& request) {
  if (landing_.request == &request) landing_ = {};
  for (Sealed& each : queue_) {
    if (each.frame.request == &request) each.frame.keepOwn();
  }
}

std::vector<Request*> Connection::unsent() {
  std::vector<Request*> requests;
  for (const Sealed& each : queue_) {
    if (each.frame.request != nullptr) requests.push_back(each.frame.request);
  }
  queue_.clear();
  return requests;
}

}  // namespace gradlink::messages::tcp
