// The memory layout of a wire: a separate segment (segment.h) whose mailboxes hold a pair of rings
// for each pair of ranks, and whose one-shot payloads hold each rank's inbox.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/wire.h"
#include "shm/segment.h"

namespace gradlink::shm::wire {

/// An entry of the message ring: descriptor and header, which may continue in the next entry.
struct alignas(kLine) Entry {
  BufferRef payload;
  std::uint64_t bytes;
  /// Returned by the receiver on release; 0: nothing.
  std::uint32_t receipt;
  std::uint32_t headerBytes;
  std::byte header[96];
};
inline constexpr std::size_t kFirstHeaderBytes = sizeof(Entry::header);
static_assert(sizeof(Entry) == kLine && kFirstHeaderBytes + kLine >= Wire::kMostHeaderBytes);

/// The ends of a ring with one writer and one reader: entry counts that never wrap, on own lines.
struct Ends {
  alignas(kLine) std::atomic<std::uint64_t> tail;  // entries written
  alignas(kLine) std::atomic<std::uint64_t> head;  // entries read
  /// Set by a writer without room: the reader rings when there is some.
  std::atomic<std::uint32_t> wantsRoom;

  // The exchange is a full barrier: the entries are visible before the other side's state is read,
  // and the other side does the reverse.
  void publishTail(std::uint64_t entries) { tail.exchange(entries, std::memory_order_seq_cst); }

  /// Returns whether the writer waits for room.
  bool publishHead(std::uint64_t entries) {
    head.exchange(entries, std::memory_order_seq_cst);
    return wantsRoom.load(std::memory_order_seq_cst) != 0 &&
           wantsRoom.exchange(0, std::memory_order_seq_cst) != 0;
  }

  /// Whether `wanted` entries fit after `written`; else the reader rings. `headSeen` caches `head`.
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

/// From one rank to another: messages, and receipts for messages of the other direction.
struct Pair {
  static constexpr std::size_t kReceipts = 512;
  static constexpr std::size_t kMostEntries = 256;

  Ends messages;
  Ends receipts;
  alignas(kLine) std::uint32_t returned[kReceipts];
  /// As many as fit in the mailbox, a power of two.
  Entry entries[1];

  static std::size_t capacity(const Segment& segment) {
    const std::size_t room =
        (segment.mailboxBytes() + sizeof(Mailbox) - offsetof(Pair, entries)) / sizeof(Entry);
    return std::min(std::bit_floor(room), kMostEntries);
  }
};

struct Inbox {
  /// Raised only for a sleeping rank.
  Flag bell;
  enum State : std::uint32_t { open, left, lost };
  std::atomic<std::uint32_t> state;
  /// Set if receipts alone should not wake this rank.
  std::atomic<std::uint32_t> ignoresReceipts;
  /// A bit for each rank that has something for this one.
  alignas(kLine) std::atomic<std::uint64_t> callers[kMaxRanks / 64];
  /// A bit for each rank that has only receipts.
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
