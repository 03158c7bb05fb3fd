// Between threads: memory whose owner has gone while others may still be reading it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gradlink::shm {

/// A stretch of memory that has lost its owner.
struct DeferredUnmap {
  void* base;
  std::size_t bytes;
};

/// Of a segment, and as old as that: a rank may go before another one has looked at the segment.
class DeferredUnmaps {
 public:
  DeferredUnmaps() = default;
  ~DeferredUnmaps() {
    for (const DeferredUnmap& unmap : unmaps_) munmap(unmap.base, unmap.bytes);
  }
  DeferredUnmaps(const DeferredUnmaps&) = delete;
  DeferredUnmaps& operator=(const DeferredUnmaps&) = delete;

  void take(std::span<const DeferredUnmap> unmaps) {
    const std::lock_guard lock(mutex_);
    unmaps_.insert(unmaps_.end(), unmaps.begin(), unmaps.end());
  }

 private:
  std::mutex mutex_;
  std::vector<DeferredUnmap> unmaps_;
};

}  // namespace gradlink::shm
