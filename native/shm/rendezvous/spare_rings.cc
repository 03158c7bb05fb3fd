#include "shm/rendezvous/spare_rings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace gradlink::shm {
namespace {

// Processes with several communicators tend to open the same ones again.
constexpr std::size_t kMostSpares = 4;
constexpr std::size_t kMostSpareBytes = 64 << 20;
// Fewer pages are touched faster than they are handed on.
constexpr std::size_t kFewestBytes = 256 << 10;

/// Whether every rank has marked that it is done; resets the marks.
bool takeMarks(const File& rings, const Segment& shape) {
  const std::size_t bytes = shape.ringMarkBytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rings.get(),
                      static_cast<off_t>(shape.ringsAt()));
  if (memory == MAP_FAILED) return false;
  auto* const marks = static_cast<std::atomic<std::uint32_t>*>(memory);
  bool done = true;
  for (int r = 0; r < shape.size(); ++r) {
    done = done && marks[r].load(std::memory_order_acquire) != 0;
  }
  for (int r = 0; done && r < shape.size(); ++r) marks[r].store(0, std::memory_order_relaxed);
  munmap(memory, bytes);
  return done;
}

}  // namespace

// Never destroyed: threads may still be meeting when the process ends.
SpareRings& SpareRings::ofProcess() {
  static auto* const instance = new SpareRings;
  return *instance;
}

File SpareRings::take(const JoinOptions& options) {
  const std::size_t slot = Segment::roundSlot(options.size, options.slotBytes);
  const std::lock_guard lock(mutex_);
  spares_.remove_if([](const Spare& spare) { return spare.process != getpid(); });
  for (auto it = spares_.begin(); it != spares_.end(); ++it) {
    const Segment& shape = it->shape;
    if (shape.size() != options.size || shape.slotBytes() != slot || it->job != options.job)
      continue;
    if (!takeMarks(it->rings, shape)) continue;
    File rings = std::move(it->rings);
    spares_.erase(it);
    return rings;
  }
  return File();
}

std::shared_ptr<void> SpareRings::keep(const JoinOptions& options, const Segment& segment,
                                       File rings) {
  if (segment.ringBytes() < kFewestBytes || segment.ringBytes() > kMostSpareBytes) return use();
  const Segment shape(nullptr, segment.size(), segment.slotBytes());
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++segments_;
  spares_.push_back({getpid(), options.job, shape, std::move(rings), number});
  const auto bytes = [&] {
    return std::accumulate(
        spares_.begin(), spares_.end(), std::size_t{0},
        [](std::size_t sum, const Spare& one) { return sum + one.shape.ringBytes(); });
  };
  while (spares_.size() > kMostSpares || bytes() > kMostSpareBytes) spares_.pop_front();
  return useOf(number);
}

std::shared_ptr<void> SpareRings::use() {
  const std::lock_guard lock(mutex_);
  return useOf(0);
}

std::shared_ptr<void> SpareRings::useOf(std::uint64_t segment) {
  ++inUse_;
  // Any address: it is never dereferenced.
  return {static_cast<void*>(this), [this, segment](void*) { leave(segment); }};
}

void SpareRings::leave(std::uint64_t segment) {
  const std::lock_guard lock(mutex_);
  if (--inUse_ == 0) return spares_.clear();
  for (Spare& spare : spares_) spare.gone = spare.gone || spare.segment == segment;
  const auto newest =
      std::find_if(spares_.rbegin(), spares_.rend(), [](const Spare& spare) { return spare.gone; });
  if (newest == spares_.rend()) return;
  const std::uint64_t kept = newest->segment;
  spares_.remove_if([&](const Spare& spare) { return spare.gone && spare.segment != kept; });
}

}  // namespace gradlink::shm
