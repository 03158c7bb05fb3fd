#include "shm/mailbox.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"
#include "core/memory/prefetch.h"

namespace gradlink::shm {
namespace {

// Shorter copies always use plain stores.
constexpr std::size_t kStyledBytes = 4096;
// A long message goes through the ring in pieces, so both sides copy at the same time.
constexpr std::size_t kMostPieceBytes = 16 << 10;

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

/// The watch of a wait before any part of a message has moved: a timeout changes nothing.
class PeerWatch final : public Watch {
 public:
  PeerWatch(Session& session, const char* op, int peer, CallTimeout& callTimeout)
      : Watch(callTimeout), session_(session), op_(op), peer_(peer) {}

  bool troubled() override {
    return session_.ended() || callTimeout.deadline().passed() || gone() ||
           session_.deadPeer() >= 0;
  }
  [[noreturn]] void fail() override {
    if (session_.ended()) session_.throwFailure(op_);
    if (const int dead = session_.deadPeer(); dead >= 0) {
      session_.end(ErrorCode::peerLost, dead, op_,
                   "rank " + std::to_string(dead) + " was lost: its process ended");
    }
    const std::string peer = peer_ == kAnySource ? "any rank" : "rank " + std::to_string(peer_);
    if (gone()) {
      throw Error(ErrorCode::peerLost, std::string(op_) + ": waiting for " + peer + ", but " +
                                           (peer_ == kAnySource ? "all others have" : "it has") +
                                           " left the communicator")
          .withRank(peer_)
          .withOp(op_);
    }
    throw harmless(ErrorCode::timeout, op_,
                   "the deadline has passed waiting for " + peer + "; timeoutMs sets the deadline")
        .withRank(peer_);
  }

 private:
  bool gone() const {
    if (peer_ != kAnySource) return session_.hasLeft(peer_);
    for (int r = 0; r < session_.size(); ++r) {
      if (r != session_.rank() && !session_.hasLeft(r)) return false;
    }
    return session_.size() > 1;
  }

  Session& session_;
  const char* op_;
  int peer_;
};

}  // namespace

Mailboxes::Mailboxes(Session& session)
    : session_(session),
      piece_(std::min(kMostPieceBytes, session.segment().mailboxBytes() / 4)),
      tails_(static_cast<std::size_t>(session.size())),
      heads_(static_cast<std::size_t>(session.size())) {}

void Mailboxes::put(int destination, std::uint64_t at, const void* data, std::size_t bytes) {
  const std::size_t size = session_.segment().mailboxBytes();
  std::byte* ring = session_.segment().mailboxData(session_.rank(), destination);
  const std::size_t offset = at & (size - 1);
  const std::size_t first = std::min<std::size_t>(bytes, size - offset);
  if (bytes < kStyledBytes) {
    copyBytes(ring + offset, data, first);
    copyBytes(ring, static_cast<const std::byte*>(data) + first, bytes - first);
    return;
  }
  style_.write(bytes, [&](bool streaming) {
    const auto copy = [&](std::byte* to, const std::byte* from, std::size_t length) {
      void* const dst[] = {to};
      if (length != 0) copyMany(dst, from, length, streaming);
    };
    copy(ring + offset, static_cast<const std::byte*>(data), first);
    copy(ring, static_cast<const std::byte*>(data) + first, bytes - first);
  });
}

void Mailboxes::get(int source, std::uint64_t at, void* data, std::size_t bytes) {
  const std::size_t size = session_.segment().mailboxBytes();
  const std::byte* ring = session_.segment().mailboxData(source, session_.rank());
  const std::size_t offset = at & (size - 1);
  const std::size_t first = std::min<std::size_t>(bytes, size - offset);
  copyBytes(data, ring + offset, first);
  copyBytes(static_cast<std::byte*>(data) + first, ring, bytes - first);
}

bool Mailboxes::hasRoom(int destination, std::size_t bytes) {
  const Mailbox& box = session_.segment().mailbox(session_.rank(), destination);
  std::uint64_t& tail = tails_[static_cast<std::size_t>(destination)];
  const std::uint64_t most = tail + session_.segment().mailboxBytes();
  const std::uint64_t needed = box.head.load(std::memory_order_relaxed) + bytes;
  if (needed <= most) return true;
  tail = box.tail.load(std::memory_order_seq_cst);
  return needed <= tail + session_.segment().mailboxBytes();
}

void Mailboxes::awaitRoom(int destination, std::size_t bytes, Watch& watch) {
  if (hasRoom(destination, bytes)) return;
  Mailbox& box = session_.segment().mailbox(session_.rank(), destination);
  // Either the receiver sees the waiting flag, or this rank sees the receiver's progress. After a
  // failed wait the flag stays set, which only costs the receiver needless system calls.
  box.waiting.store(1, std::memory_order_seq_cst);
  session_.waiter().awaitWhen(
      session_.own().mail, [&] { return hasRoom(destination, bytes); }, watch);
  box.waiting.store(0, std::memory_order_relaxed);
}

void Mailboxes::readUpTo(int source, std::uint64_t tail) {
  Mailbox& box = session_.segment().mailbox(source, session_.rank());
  box.tail.store(tail, std::memory_order_seq_cst);
  if (box.waiting.load(std::memory_order_seq_cst) != 0) {
    session_.waiter().raise(session_.segment().rank(source).mail);
  }
}

void Mailboxes::send(const void* data, std::size_t count, DType dtype, int destination, int tag,
                     CallTimeout& callTimeout) {
  const std::size_t bytes = count * sizeOf(dtype);
  const StreamEnvelope header{{count, tag, dtype, bytes > kEagerBytes, 0},
                              reinterpret_cast<std::uintptr_t>(data)};
  const Envelope& envelope = header.envelope;
  if (destination == session_.rank()) {
    unexpected_.push_back(sentToSelf(session_.rank(), envelope, data));
    return;
  }

  const Waiter& waiter = session_.waiter();
  Mailbox& box = session_.segment().mailbox(session_.rank(), destination);
  Flag& ownMail = session_.own().mail;
  Flag& theirMail = session_.segment().rank(destination).mail;
  PeerWatch harmless(session_, "send", destination, callTimeout);
  if (session_.hasLeft(destination)) harmless.fail();

  const std::size_t needed = sizeof(header) + (envelope.isLong ? 0 : padded(bytes));
  awaitRoom(destination, needed, harmless);
  std::uint64_t head = box.head.load(std::memory_order_relaxed);
  if (envelope.isLong) box.answer.store(Mailbox::none, std::memory_order_relaxed);
  put(destination, head, &header, sizeof(header));
  if (!envelope.isLong) put(destination, head + sizeof(header), data, bytes);
  head += needed;
  box.head.store(head, std::memory_order_release);
  waiter.raise(theirMail);
  if (!envelope.isLong) {
    // The next one is likely to be as long. The receiver's core has the ring's lines since it read
    // them.
    const std::size_t offset = head & (session_.segment().mailboxBytes() - 1);
    const std::byte* const ring = session_.segment().mailboxData(session_.rank(), destination);
    prefetchForWriting(ring + offset, std::min(needed, session_.segment().mailboxBytes() - offset));
    return;
  }

  // The receiver now counts on this message: giving up ends the communicator.
  CallWatch watch(session_, "send", callTimeout);
  watch.on(destination);
  std::size_t done = session_.betweenProcesses() ? 0 : bytes;
  while (done < bytes) {
    const std::size_t length = std::min(piece_, bytes - done);
    awaitRoom(destination, padded(length), watch);
    put(destination, head, static_cast<const std::byte*>(data) + done, length);
    done += length;
    head += padded(length);
    box.head.store(head, std::memory_order_release);
    waiter.raise(theirMail);
  }
  const std::uint32_t goal = session_.betweenProcesses() ? Mailbox::wanted : Mailbox::taken;
  waiter.awaitWhen(
      ownMail, [&] { return box.answer.load(std::memory_order_acquire) >= goal; }, watch);
}

void Mailboxes::checkFits(int source, const Envelope& envelope, const Wanted& wanted) {
  if (wanted.fits(envelope)) return;
  session_.end(ErrorCode::mismatch, source, "receive",
               misfitText(source, envelope, session_.rank(), wanted));
}

bool Mailboxes::takeUnexpected(const Wanted& wanted, Received& received) {
  auto found = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& u) {
    return wanted.matches(u.source, u.envelope);
  });
  if (found == unexpected_.end()) return false;
  checkFits(found->source, found->envelope, wanted);
  const std::size_t bytes = found->envelope.bytes();
  copyBytes(wanted.data, found->data.get(), bytes);
  received = {found->source, found->envelope.count};
  unexpected_.erase(found);
  return true;
}

void Mailboxes::takeLong(int source, const StreamEnvelope& header, const Wanted& wanted,
                         CallTimeout& callTimeout) {
  const Waiter& waiter = session_.waiter();
  Mailbox& box = session_.segment().mailbox(source, session_.rank());
  Flag& theirMail = session_.segment().rank(source).mail;
  std::uint64_t tail = box.tail.load(std::memory_order_relaxed) + sizeof(StreamEnvelope);
  std::uint64_t& head = heads_[static_cast<std::size_t>(source)];
  const std::size_t bytes = header.envelope.bytes();
  readUpTo(source, tail);
  if (!session_.betweenProcesses()) {
    // As in a direct call: a sender that ends the communicator waits until nobody reads its buffer.
    session_.own().working.store(1, std::memory_order_seq_cst);
    if (!session_.ended())
      copyBytes(wanted.data, reinterpret_cast<const void*>(header.address), bytes);
    session_.own().working.store(0, std::memory_order_seq_cst);
    session_.check("receive");
    box.answer.store(Mailbox::taken, std::memory_order_release);
    waiter.raise(theirMail);
    return;
  }
  box.answer.store(Mailbox::wanted, std::memory_order_release);
  waiter.raise(theirMail);
  CallWatch watch(session_, "receive", callTimeout);
  watch.on(source);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t length = std::min(piece_, bytes - done);
    const auto hasCome = [&] {
      if (head - tail < padded(length)) head = box.head.load(std::memory_order_acquire);
      return head - tail >= padded(length);
    };
    waiter.awaitWhen(session_.own().mail, hasCome, watch);
    get(source, tail, static_cast<std::byte*>(wanted.data) + done, length);
    done += length;
    tail += padded(length);
    readUpTo(source, tail);
  }
}

// Takes the wanted message. Sets short ones aside until there is none left, or a long one with
// another tag: its sender waits, so nothing follows it.
bool Mailboxes::takeFrom(int source, const Wanted& wanted, CallTimeout& callTimeout,
                         Received& received) {
  const Mailbox& box = session_.segment().mailbox(source, session_.rank());
  std::uint64_t& head = heads_[static_cast<std::size_t>(source)];
  for (;;) {
    const std::uint64_t tail = box.tail.load(std::memory_order_relaxed);
    if (head == tail) head = box.head.load(std::memory_order_acquire);
    if (head == tail) return false;
    StreamEnvelope header;
    get(source, tail, &header, sizeof(header));
    const Envelope& envelope = header.envelope;
    const bool matches = envelope.tag == wanted.tag;
    if (envelope.isLong && !matches) return false;
    if (matches) {
      checkFits(source, envelope, wanted);
      received = {source, envelope.count};
    }
    if (envelope.isLong) {
      takeLong(source, header, wanted, callTimeout);
      return true;
    }
    const std::size_t bytes = envelope.bytes();
    if (matches) {
      get(source, tail + sizeof(header), wanted.data, bytes);
    } else {
      auto data = std::make_unique<std::byte[]>(bytes);
      get(source, tail + sizeof(header), data.get(), bytes);
      unexpected_.push_back({source, envelope, std::move(data)});
    }
    readUpTo(source, tail + sizeof(header) + padded(bytes));
    if (matches) return true;
  }
}

Received Mailboxes::receive(void* data, std::size_t count, DType dtype, int source, int tag,
                            CallTimeout& callTimeout) {
  const Wanted wanted{data, count, dtype, source, tag};
  Flag& mail = session_.own().mail;
  PeerWatch watch(session_, "receive", source, callTimeout);
  Received received{};
  const bool isOthers = source != kAnySource && source != session_.rank();
  while (isOthers) {
    if (takeUnexpected(wanted, received)) return received;
    if (takeFrom(source, wanted, callTimeout, received)) return received;
    // Not the flag: every sender writes that.
    const Mailbox& box = session_.segment().mailbox(source, session_.rank());
    const std::uint64_t seen = heads_[static_cast<std::size_t>(source)];
    session_.waiter().awaitWhen(
        mail, [&] { return box.head.load(std::memory_order_acquire) != seen; }, watch);
  }
  for (;;) {
    const std::uint32_t seen = mail.value.load(std::memory_order_acquire);
    if (takeUnexpected(wanted, received)) return received;
    for (int i = 0; source == kAnySource && i < session_.size(); ++i) {
      // Starts after the source served last, so a busy rank does not starve the others.
      const int from = (firstSource_ + i) % session_.size();
      if (from != session_.rank() && takeFrom(from, wanted, callTimeout, received)) {
        firstSource_ = (from + 1) % session_.size();
        return received;
      }
    }
    session_.waiter().awaitWhen(
        mail, [&] { return mail.value.load(std::memory_order_acquire) != seen; }, watch);
  }
}

}  // namespace gradlink::shm
