// How the ranks of a wire use the memory that they share: a segment of its own (segment.h), whose
// mailboxes hold a pair of rings for each pair of ranks, and whose one-shot payloads hold each
// rank's doorbell.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/wire.h"
#include "shm/segment.h"

namespace gradlink::shm::wire {

/// One entry of the ring of messages: the descriptor and the first bytes of the header; the rest of
/// a longer header is in the next entry.
struct alignas(kLine) Entry {
  BufferRef payload;
  std::uint64_t bytes;
  /// What the receiver returns when it releases the message, 0 for nothing.
  std::uint32_t receipt;
  std::uint32_t headerBytes;
  std::byte header[96];
};
inline constexpr std::size_t kFirstHeaderBytes = sizeof(Entry::header);
static_assert(sizeof(Entry) == kLine && kFirstHeaderBytes + kLine >= Wire::kMostHeaderBytes);

/// The two ends of a ring of one writer and one reader; they count entries and never wrap. The ends
/// lie apart: each is written by one side only.
struct Ends {
  alignas(kLine) std::atomic<std::uint64_t> tail;  // entries written
  alignas(kLine) std::atomic<std::uint64_t> head;  // entries read
  /// Set by a writer that found no room: the reader rings when there is some.
  std::atomic<std::uint32_t> wantsRoom;

  // The exchange is a full barrier: what is written is visible before the other side's state is
  // looked at, and the other side does it the other way round.
  void publishTail(std::uint64_t entries) { tail.exchange(entries, std::memory_order_seq_cst); }

  /// Whether the writer waits for the room that there is now.
  bool publishHead(std::uint64_t entries) {
    head.exchange(entries, std::memory_order_seq_cst);
    return wantsRoom.load(std::memory_order_seq_cst) != 0 &&
           wantsRoom.exchange(0, std::memory_order_seq_cst) != 0;
  }

  /// Whether `wanted` entries fit behind `written` ones; `headSeen` is what the writer last saw of
  /// `head`. Where not, the reader will ring.
  bool hasRoom(std::uint64_t written, std::uint64_t& headSeen, std::uint64_t wanted,
               std::uint64_t capacity) {
    if (written + wanted - headSeen <= capacity) return true;
    headSeen = head.load(std::memory_order_acquire);
    if (written + wanted - headSeen <= capacity) return true;
    wantsRoom.store(1, std::memory_order_seq_cst);
    headSeen = head.load(std::memory_order_seq_cst);
    return written + wanted - headSeen <= capacity;
  }
};

/// From one rank to another: messages, and receipts of what went the other way.
struct Pair {
  static constexpr std::size_t kReceipts = 512;

  Ends messages;
  Ends receipts;
  alignas(kLine) std::uint32_t returned[kReceipts];
  /// As many entries as the mailbox has room for, a power of two.
  Entry entries[1];

  static std::size_t capacity(const Segment& segment) {
    return std::bit_floor((segment.mailboxBytes() + sizeof(Mailbox) - offsetof(Pair, entries)) /
                          sizeof(Entry));
  }
};

/// Where a rank hears that something has happened.
struct Inbox {
  /// Raised only for who sleeps.
  Flag bell;
  enum State : std::uint32_t { open, left, lost };
  std::atomic<std::uint32_t> state;
  /// Set where receipts are not worth being woken for.
  std::atomic<std::uint32_t> ignoresReceipts;
  /// A bit for each rank that has something for this one.
  alignas(kLine) std::atomic<std::uint64_t> callers[kMaxRanks / 64];
  /// And for each that has nothing but receipts.
  alignas(kLine) std::atomic<std::uint64_t> returners[kMaxRanks / 64];
};
static_assert(sizeof(Inbox) <= Segment::kOneShotBytes);

inline Pair& pair(const Segment& segment, int from, int to) {
  return reinterpret_cast<Pair&>(segment.mailbox(from, to));
}
inline Inbox& inbox(const Segment& segment, int rank) {
  return *reinterpret_cast<Inbox*>(segment.oneShot(rank, 0));
}

}  // namespace gradlink::shm::wire
