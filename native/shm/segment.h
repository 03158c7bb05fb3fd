// The memory that all ranks of a communicator share: posts, staging slots, mailboxes. The same
// layout in anonymous memory (threads) and in a memfd (processes), initially all zero.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/call.h"
#include "shm/wait.h"

namespace gradlink::shm {

/// Two lines: the adjacent-line prefetcher of x86 fetches pairs.
inline constexpr std::size_t kLine = 128;
inline constexpr std::size_t kPage = 4096;
inline constexpr int kMaxRanks = 1024;

struct BufferRef {
  static constexpr std::uint64_t kPrivate = 0;  // only its rank can address it
  static constexpr std::uint64_t kPointer = 1;  // `at` is an address, for threads
  /// One of the above, or the offset of the shared region in the segment's file.
  std::uint64_t region = kPrivate;
  std::uint64_t at = 0;
};

/// A rank's announcement of call number `posted`. Calls alternate between two posts: no rank is
/// more than one call ahead, so posts are not overwritten while read. 8-byte calls need only this
/// line.
struct alignas(kLine) Post {
  Flag posted;
  Shape shape;
  union {
    std::byte payload[32];
    BufferRef refs[2];  // in, out
  };
  /// Seconds of the rank's last measured call, by the best and the tried way (staging_styles.h).
  float reported[2];
};
static_assert(sizeof(Shape) == 16 && sizeof(Post) == kLine);

struct alignas(kLine) RankBlock {
  Post posts[2];
  /// Chunks of staged calls: written to this rank's slots, and read by this rank from all slots.
  alignas(kLine) Flag staged;
  alignas(kLine) Flag consumed;
  /// Raised on a change in a mailbox that this rank sends to or receives from.
  alignas(kLine) Flag mail;
  /// Claimed parts of this rank's range of a direct call: (call number << 32 | parts taken).
  alignas(kLine) std::atomic<std::uint64_t> claimed;
  /// Set while this rank accesses buffers of others.
  alignas(kLine) std::atomic<std::uint32_t> working;
  std::atomic<std::uint32_t> left;
  /// The cores this rank may run on, written before it is ready.
  cpu_set_t cores;
};

/// Why the communicator ended; the first writer wins.
struct alignas(kLine) Failure {
  enum State : std::uint32_t { none, writing, written };
  std::atomic<std::uint32_t> state;
  std::int32_t code;
  std::int32_t rank;
  char op[32];
  char message[1024];
};

struct Mailbox {
  alignas(kLine) std::atomic<std::uint64_t> head;  // bytes written
  alignas(kLine) std::atomic<std::uint64_t> tail;  // bytes read
  /// For the long message at the tail: whether the receiver has started, and is done.
  enum Answer : std::uint32_t { none, wanted, taken };
  std::atomic<std::uint32_t> answer;
  /// Set by a sender that waits for room: the reader wakes it. On the line that the receiver has.
  std::atomic<std::uint32_t> waiting;
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::uint32_t size;
  /// The size of a core's second-level cache; equal on all ranks.
  std::uint32_t secondCacheBytes;
  std::uint64_t slotBytes;
  alignas(kLine) Failure failure;
  // Direct calls: completed parts of the current one, and the number of the last finished one.
  alignas(kLine) std::atomic<std::uint64_t> completed;
  alignas(kLine) Flag finished;
  /// The end of the file: regions of allocShared are appended, and offsets are never reused.
  alignas(kLine) std::atomic<std::uint64_t> fileEnd;
};

/// All offsets; every rank computes the same.
class Segment {
 public:
  /// The largest input sent in a post; the calls that use it are limited further by measurement.
  static constexpr std::size_t kOneShotBytes = 64 << 10;

  static std::size_t bytesFor(int size, std::size_t slotBytes);
  /// Rounds `slotBytes` so each rank's part is whole lines; 0 becomes the default.
  static std::size_t roundSlot(int size, std::size_t slotBytes);

  Segment() = default;
  /// A view of `memory`, which must stay mapped.
  Segment(void* memory, int size, std::size_t slotBytes);

  int size() const { return size_; }
  std::size_t slotBytes() const { return slotBytes_; }
  std::size_t mailboxBytes() const { return mailboxBytes_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_); }
  RankBlock& rank(int r) const {
    return reinterpret_cast<RankBlock*>(memory_ + ranksAt_)[static_cast<std::size_t>(r)];
  }
  std::byte* oneShot(int r, std::uint32_t call) const {
    return memory_ + oneShotAt_ + (2 * static_cast<std::size_t>(r) + (call & 1)) * kOneShotBytes;
  }
  /// The rings for rank r's input and for its part of results; chunks use their slots in order.
  std::byte* stage(int r) const {
    return memory_ + stageAt_ + static_cast<std::size_t>(r) * stageBytes_;
  }
  std::byte* result(int r) const {
    return memory_ + resultAt_ + static_cast<std::size_t>(r) * resultBytes_;
  }
  /// Bytes of a stage ring; a result ring has 1/size of it.
  std::size_t stageBytes() const { return stageBytes_; }
  /// All rings, after one mark for each rank that is done with them. Between processes they have
  /// their own file, mapped at this place, which later communicators may reuse.
  std::byte* rings() const { return memory_ + ringsAt_; }
  std::size_t ringsAt() const { return ringsAt_; }
  std::size_t ringBytes() const { return mailboxesAt_ - ringsAt_; }
  std::size_t ringMarkBytes() const { return stageAt_ - ringsAt_; }
  std::atomic<std::uint32_t>& doneWithRings(int r) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(rings())[static_cast<std::size_t>(r)];
  }
  Mailbox& mailbox(int source, int destination) const {
    return *reinterpret_cast<Mailbox*>(memory_ + mailboxesAt_ +
                                       pair(source, destination) * mailboxStride());
  }
  std::byte* mailboxData(int source, int destination) const {
    return reinterpret_cast<std::byte*>(&mailbox(source, destination)) + sizeof(Mailbox);
  }

 private:
  std::size_t pair(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(size_) +
           static_cast<std::size_t>(b);
  }
  std::size_t mailboxStride() const { return sizeof(Mailbox) + mailboxBytes_; }

  std::byte* memory_ = nullptr;
  int size_ = 0;
  std::size_t slotBytes_ = 0;
  std::size_t stageBytes_ = 0;
  std::size_t resultBytes_ = 0;
  std::size_t mailboxBytes_ = 0;
  std::size_t ranksAt_ = 0;
  std::size_t oneShotAt_ = 0;
  std::size_t ringsAt_ = 0;
  std::size_t stageAt_ = 0;
  std::size_t resultAt_ = 0;
  std::size_t mailboxesAt_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace gradlink::shm
