// The rings of communicators between processes, kept for the next ones of their job, size and
// slots: their pages are there already, where the first touch of new ones is slow.
//
// Only who led a rendezvous keeps the rings, and takes them when it leads again.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>

#include "shm/process_segment.h"
#include "shm/shm.h"

namespace gradlink::shm {

/// From any thread.
class SpareRings {
 public:
  static SpareRings& ofProcess();

  /// Rings that every rank of theirs is done with; none where there are none such.
  File take(const JoinOptions&);
  /// Those of a segment that all ranks have entered. What is kept is bounded: the oldest go.
  void keep(const JoinOptions&, const Segment&, File rings);

 private:
  struct Spare {
    /// A child that was forked has them too, and is not to take them.
    int process;
    std::string job;
    /// Without memory.
    Segment shape;
    File rings;
  };

  std::mutex mutex_;
  std::list<Spare> spares_;  // the oldest first
};

}  // namespace gradlink::shm
