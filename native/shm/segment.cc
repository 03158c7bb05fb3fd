#include "shm/segment.h"

#include <algorithm>

namespace gradlink::shm {
namespace {

// The default size of a staging slot; see staged.h for the measurement.
constexpr std::size_t kDefaultSlotBytes = 256 << 10;
// Slots of a rank's stage ring. Writes to lines in another core's second-level cache are slow: 2.3
// GB/s into 4 slots of 64 KiB, 34 GB/s into 32 (EPYC Zen 4, 1 MiB cache, November 2026), which are
// evicted by their next turn. All rings should still fit in the last-level cache.
constexpr std::size_t kRingSlots = 32;
constexpr std::size_t kFewestRingSlots = 4;
constexpr std::size_t kMostRingSlots = 16;

// Mailboxes grow with the square of the ranks: unused pages cost nothing, but address space does.
// Through 256 KiB a message of 1 MiB takes 0.45 to 0.65 of the time through 64 KiB, whose lines the
// receiver's first-level cache still holds when they are written again (Xeon, Sapphire Rapids,
// November 2026); through 1 MiB as long as through 256 KiB. A power of two: offsets are masked.
std::size_t mailboxBytesFor(int size) {
  if (size <= 8) return 256 << 10;
  return size <= 64 ? 64 << 10 : 16 << 10;
}

std::size_t roundUp(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::size_t Segment::roundSlot(int size, std::size_t slotBytes) {
  const std::size_t lines = static_cast<std::size_t>(size) * kLine;
  return roundUp(std::max<std::size_t>(slotBytes == 0 ? kDefaultSlotBytes : slotBytes, 1), lines);
}

std::size_t Segment::bytesFor(int size, std::size_t slotBytes) {
  return Segment(nullptr, size, slotBytes).bytes_;
}

Segment::Segment(void* memory, int size, std::size_t slotBytes)
    : memory_(static_cast<std::byte*>(memory)),
      size_(size),
      slotBytes_(slotBytes),
      mailboxBytes_(mailboxBytesFor(size)) {
  const auto n = static_cast<std::size_t>(size);
  std::size_t end = 0;
  auto take = [&](std::size_t bytes) {
    const std::size_t at = end;
    end = roundUp(end + bytes, kPage);
    return at;
  };
  take(sizeof(SegmentHeader));
  ranksAt_ = take(n * sizeof(RankBlock));
  oneShotAt_ = take(2 * n * kOneShotBytes);
  stageBytes_ = std::clamp(kRingSlots / n, kFewestRingSlots, kMostRingSlots) * slotBytes_;
  resultBytes_ = stageBytes_ / n;
  ringsAt_ = take(n * sizeof(std::atomic<std::uint32_t>));
  stageAt_ = take(n * stageBytes_);
  resultAt_ = take(n * resultBytes_);
  mailboxesAt_ = take(n * n * mailboxStride());
  bytes_ = end;
}

}  // namespace gradlink::shm
