// Between threads: memory whose owner has gone while others may still be reading it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace gradlink::shm {

/// A stretch of memory that has lost its owner.
struct Orphan {
  void* base;
  std::size_t bytes;
};

/// Of a segment, and as old as that: a rank may go before another one has looked at the segment.
class Graveyard {
 public:
  Graveyard() = default;
  ~Graveyard() {
    for (const Orphan& orphan : orphans_) munmap(orphan.base, orphan.bytes);
  }
  Graveyard(const Graveyard&) = delete;
  Graveyard& operator=(const Graveyard&) = delete;

  void take(std::span<const Orphan> orphans) {
    const std::lock_guard lock(mutex_);
    orphans_.insert(orphans_.end(), orphans.begin(), orphans.end());
  }

 private:
  std::mutex mutex_;
  std::vector<Orphan> orphans_;
};

}  // namespace gradlink::shm
