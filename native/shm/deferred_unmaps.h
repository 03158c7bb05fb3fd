// Between threads: freed memory that peers may still read.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gradlink::shm {

struct DeferredUnmap {
  void* base;
  std::size_t bytes;
};

/// Lives as long as the segment: a rank may leave before another one has looked at it.
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
