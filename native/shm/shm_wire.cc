#include "shm/shm_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "shm/rendezvous/rendezvous.h"

namespace gradlink::shm {

using wire::Inbox;
using wire::Pair;

namespace {

// How long a peer's death may go unnoticed: it rings no bell.
constexpr std::chrono::milliseconds kLivenessEvery(10);

/// False if it was set: the receiver has yet to look and will see everything.
bool setBit(std::atomic<std::uint64_t>* words, int rank) {
  auto& word = words[static_cast<std::size_t>(rank) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
  if ((word.load(std::memory_order_seq_cst) & bit) != 0) return false;
  word.fetch_or(bit, std::memory_order_seq_cst);
  return true;
}

bool anyBit(const std::atomic<std::uint64_t>* words, int count) {
  return std::any_of(words, words + count,
                     [](const auto& word) { return word.load(std::memory_order_seq_cst) != 0; });
}

}  // namespace

ShmWire::ShmWire(Membership membership, int rank)
    : rank_(rank),
      deferredUnmaps_(membership.deferredUnmaps),
      session_(std::move(membership), rank),
      // Each rank's thread works for another one: spinning would take a core from it.
      waiter_(deferredUnmaps_ == nullptr, false),
      regions_(session_),
      capacity_(Pair::capacity(session_.segment())),
      peers_(static_cast<std::size_t>(session_.size())) {}

ShmWire::~ShmWire() {
  if (!closed_) end(Inbox::lost);
  if (settled()) return;
  const auto unmaps = regions_.abandon();
  if (deferredUnmaps_) deferredUnmaps_->take(unmaps);
}

void ShmWire::ring(int r) {
  Inbox& there = inbox(r);
  if (!setBit(there.callers, rank_)) return;
  if (there.bell.sleepers.load(std::memory_order_seq_cst) != 0) {
    waiter_.raise(there.bell);
  }
}

void ShmWire::ringReceipt(int r) {
  Inbox& there = inbox(r);
  if (!setBit(there.returners, rank_)) return;
  // A rank that starts to care checks the bits after setting its flag.
  if (there.ignoresReceipts.load(std::memory_order_seq_cst) == 0 &&
      there.bell.sleepers.load(std::memory_order_seq_cst) != 0) {
    waiter_.raise(there.bell);
  }
}

void ShmWire::setReceiptsMatter(bool value) {
  inbox(rank_).ignoresReceipts.store(value ? 0 : 1, std::memory_order_seq_cst);
}

bool ShmWire::called() const {
  const Inbox& own = inbox(rank_);
  const int words = (size() + 63) / 64;
  if (anyBit(own.callers, words)) return true;
  return own.ignoresReceipts.load(std::memory_order_relaxed) == 0 && anyBit(own.returners, words);
}

void ShmWire::send(int destination, std::span<const std::byte> header, const void* payload,
                   std::size_t bytes, std::uint64_t ticket) {
  if (destination < 0 || destination >= size()) {
    throw misuse("send", std::to_string(destination) + " is not a rank of this wire");
  }
  if (header.size() > kMostHeaderBytes) throw misuse("send", "the header is too long");
  if (closed_) throw Error(ErrorCode::closed, "send: the wire is closed").withOp("send");
  Queued message{};
  if (payload != nullptr) {
    if (ticket == 0) throw misuse("send", "a payload needs a ticket");
    message.entry.payload = regions_.refer(payload, bytes);
    if (message.entry.payload.region == BufferRef::kPrivate) {
      throw misuse("send", "the payload is not in memory of this wire");
    }
    message.entry.bytes = bytes;
  }
  message.entry.headerBytes = static_cast<std::uint32_t>(header.size());
  const std::size_t first = std::min(header.size(), wire::kFirstHeaderBytes);
  std::copy_n(header.begin(), first, message.entry.header);
  std::copy(header.begin() + static_cast<std::ptrdiff_t>(first), header.end(), message.rest);

  Peer& to = peer(destination);
  std::unique_lock lock(to.mutex);
  if (to.gone) {
    lock.unlock();
    if (ticket == 0) return;
    {
      std::lock_guard dropped(droppedMutex_);
      droppedTickets_.push_back(ticket);
    }
    ring(rank_);
    return;
  }
  if (ticket != 0) {
    if (to.freeReceipts.empty()) {
      to.tickets.push_back(0);
      to.freeReceipts.push_back(static_cast<std::uint32_t>(to.tickets.size()));
    }
    message.entry.receipt = to.freeReceipts.back();
    to.freeReceipts.pop_back();
    to.tickets[message.entry.receipt - 1] = ticket;
  }
  to.sent.fetch_add(header.size() + message.entry.bytes, std::memory_order_relaxed);
  if (!to.queue.empty() || !put(destination, to, message)) {
    to.queue.push_back(message);
    queued_.store(true, std::memory_order_release);
    return;
  }
  lock.unlock();
  ring(destination);
}

bool ShmWire::put(int to, Peer& peer, const Queued& message) {
  Pair& pair = wire::pair(session_.segment(), rank_, to);
  const bool isLong = message.entry.headerBytes > wire::kFirstHeaderBytes;
  const std::uint64_t wanted = isLong ? 2 : 1;
  if (!pair.messages.hasRoom(peer.tail, peer.headSeen, wanted, capacity_)) return false;
  pair.entries[peer.tail & (capacity_ - 1)] = message.entry;
  if (isLong) std::memcpy(&pair.entries[(peer.tail + 1) & (capacity_ - 1)], message.rest, kLine);
  peer.tail += wanted;
  pair.messages.publishTail(peer.tail);
  return true;
}

bool ShmWire::putReceipt(int to, Peer& peer, std::uint32_t receipt) {
  Pair& pair = wire::pair(session_.segment(), rank_, to);
  if (!pair.receipts.hasRoom(peer.receiptTail, peer.receiptHeadSeen, 1, Pair::kReceipts)) {
    return false;
  }
  pair.returned[peer.receiptTail % Pair::kReceipts] = receipt;
  pair.receipts.publishTail(++peer.receiptTail);
  return true;
}

// True if nothing is left to write.
bool ShmWire::flush(int to, Peer& peer) {
  const std::size_t before = peer.queue.size() + peer.queuedReceipts.size();
  while (!peer.queuedReceipts.empty() && putReceipt(to, peer, peer.queuedReceipts.front()))
    peer.queuedReceipts.pop_front();
  while (!peer.queue.empty() && put(to, peer, peer.queue.front())) peer.queue.pop_front();
  const std::size_t left = peer.queue.size() + peer.queuedReceipts.size();
  if (left != before) ring(to);
  return left == 0;
}

void ShmWire::release(std::uint64_t token) {
  giveBack(*reinterpret_cast<Record*>(static_cast<std::uintptr_t>(token)));
}

void ShmWire::giveBack(Record& record) {
  const int source = record.source;
  const std::uint32_t receipt = record.receipt;
  {
    std::lock_guard lock(recordsMutex_);
    record.held = false;
    freeRecords_.push_back(&record);
  }
  if (receipt == 0) return;
  Peer& from = peer(source);
  {
    std::lock_guard lock(from.mutex);
    if (from.gone) return;
    if (!from.queuedReceipts.empty() || !putReceipt(source, from, receipt)) {
      from.queuedReceipts.push_back(receipt);
      queued_.store(true, std::memory_order_release);
      return;
    }
  }
  ringReceipt(source);
}

void ShmWire::poll(WireEvents& events, Deadline until) {
  for (;;) {
    sweep(events);
    const auto now = Deadline::Clock::now();
    if (now >= nextCheck_) {
      nextCheck_ = now + kLivenessEvery;
      checkLiveness(events);
    }
    if (woken_.exchange(false, std::memory_order_seq_cst) || !events.empty() || now >= until.at()) {
      return;
    }
    waiter_.awaitUntil(
        inbox(rank_).bell, [this] { return called(); }, std::min(until.at(), nextCheck_));
  }
}

bool ShmWire::pollSleeps() const {
  return inbox(rank_).bell.sleepers.load(std::memory_order_seq_cst) != 0;
}

void ShmWire::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  ring(rank_);
}

void ShmWire::sweepAll(std::atomic<std::uint64_t>* words, WireEvents& events) {
  const int count = (size() + 63) / 64;
  for (int w = 0; w < count; ++w) {
    if (words[w].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = words[w].exchange(0, std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) sweepFrom(64 * w + std::countr_zero(bits), events);
  }
}

void ShmWire::sweep(WireEvents& events) {
  Inbox& own = inbox(rank_);
  sweepAll(own.returners, events);
  sweepAll(own.callers, events);
  if (queued_.load(std::memory_order_relaxed) && queued_.exchange(false)) {
    for (int r = 0; r < size(); ++r) {
      Peer& to = peer(r);
      std::lock_guard lock(to.mutex);
      if (!flush(r, to)) queued_.store(true, std::memory_order_release);
    }
  }
  std::lock_guard lock(droppedMutex_);
  events.sent.insert(events.sent.end(), droppedTickets_.begin(), droppedTickets_.end());
  droppedTickets_.clear();
}

void ShmWire::sweepFrom(int source, WireEvents& events) {
  if (peer(source).gone) return;
  // Read before its rings are emptied, so they contain everything that it sent before it left.
  auto state = inbox(source).state.load(std::memory_order_seq_cst);
  // In this order: a rank that sees a message also sees the earlier releases.
  takeMessages(source, events);
  takeReceipts(source, events);
  if (state == Inbox::open) return;
  dismiss(source, events);
  (state == Inbox::left ? events.left : events.lost).push_back(source);
}

void ShmWire::checkLiveness(WireEvents& events) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || peer(r).gone) continue;
    // In this order: a leaving rank says so before its lock goes.
    if (!session_.alive(r)) {
      std::uint32_t expected = Inbox::open;
      inbox(r).state.compare_exchange_strong(expected, Inbox::lost);
    }
    if (inbox(r).state.load(std::memory_order_seq_cst) != Inbox::open) sweepFrom(r, events);
  }
}

void ShmWire::takeReceipts(int source, WireEvents& events) {
  Pair& pair = wire::pair(session_.segment(), source, rank_);
  Peer& from = peer(source);
  const std::uint64_t tail = pair.receipts.tail.load(std::memory_order_seq_cst);
  if (from.receiptHead == tail) return;
  {
    std::lock_guard lock(from.mutex);
    for (; from.receiptHead != tail; ++from.receiptHead) {
      const std::uint32_t receipt = pair.returned[from.receiptHead % Pair::kReceipts];
      events.sent.push_back(std::exchange(from.tickets[receipt - 1], 0));
      from.freeReceipts.push_back(receipt);
    }
  }
  if (pair.receipts.publishHead(tail)) ring(source);
}

void ShmWire::takeMessages(int source, WireEvents& events) {
  Pair& pair = wire::pair(session_.segment(), source, rank_);
  Peer& from = peer(source);
  const std::uint64_t tail = pair.messages.tail.load(std::memory_order_seq_cst);
  if (from.head == tail) return;
  std::uint64_t bytes = 0;
  {
    std::lock_guard lock(recordsMutex_);
    while (from.head != tail) {
      const wire::Entry& entry = pair.entries[from.head++ & (capacity_ - 1)];
      if (freeRecords_.empty()) freeRecords_.push_back(&records_.emplace_back());
      Record& record = *freeRecords_.back();
      freeRecords_.pop_back();
      record.source = source;
      record.receipt = entry.receipt;
      record.held = true;
      const std::size_t first = std::min<std::size_t>(entry.headerBytes, wire::kFirstHeaderBytes);
      std::memcpy(record.header, entry.header, first);
      if (entry.headerBytes > first) {
        std::memcpy(record.header + first, &pair.entries[from.head++ & (capacity_ - 1)],
                    entry.headerBytes - first);
      }
      const bool hasPayload = entry.payload.region != BufferRef::kPrivate;
      events.messages.push_back({source,
                                 {record.header, entry.headerBytes},
                                 hasPayload ? regions_.resolve(entry.payload) : nullptr,
                                 entry.bytes,
                                 reinterpret_cast<std::uintptr_t>(&record)});
      bytes += entry.headerBytes + entry.bytes;
    }
  }
  from.received.fetch_add(bytes, std::memory_order_relaxed);
  if (pair.messages.publishHead(tail)) ring(source);
}

void ShmWire::dismiss(int r, WireEvents& events) {
  Peer& gone = peer(r);
  std::lock_guard lock(gone.mutex);
  gone.gone = true;
  gone.queue.clear();
  gone.queuedReceipts.clear();
  for (const std::uint64_t ticket : gone.tickets) {
    if (ticket != 0) events.sent.push_back(ticket);
  }
  gone.tickets.clear();
  gone.freeReceipts.clear();
}

std::vector<std::uint64_t> ShmWire::bytesSent() const {
  std::vector<std::uint64_t> bytes;
  for (const Peer& p : peers_) bytes.push_back(p.sent.load(std::memory_order_relaxed));
  return bytes;
}

std::vector<std::uint64_t> ShmWire::bytesReceived() const {
  std::vector<std::uint64_t> bytes;
  for (const Peer& p : peers_) bytes.push_back(p.received.load(std::memory_order_relaxed));
  return bytes;
}

// Whether everything that this rank sent has been received.
bool ShmWire::settled() {
  return std::all_of(peers_.begin(), peers_.end(), [](Peer& p) {
    std::lock_guard lock(p.mutex);
    return p.queue.empty() && p.queuedReceipts.empty() && p.freeReceipts.size() == p.tickets.size();
  });
}

void ShmWire::close(Deadline until) {
  if (closed_) return;
  setReceiptsMatter(true);
  // Two ranks that close at once must not wait for each other's releases.
  for (Record& record : records_) {
    if (record.held) giveBack(record);
  }
  WireEvents ignored;
  for (;;) {
    poll(ignored, Deadline::in(0));
    for (const WireMessage& message : ignored.messages) release(message.token);
    ignored.clear();
    if (settled() || until.passed()) break;
    const auto soon = Deadline::Clock::now() + kLivenessEvery;
    waiter_.awaitUntil(
        inbox(rank_).bell, [this] { return called(); }, std::min(until.at(), soon));
  }
  end(Inbox::left);
}

void ShmWire::end(Inbox::State state) {
  closed_ = true;
  inbox(rank_).state.store(state, std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) ring(r);
  }
}

}  // namespace gradlink::shm
