// The rings of communicators between processes, kept for the next ones of their job, size and
// slots: their pages are there already, where the first touch of new ones is slow.
//
// Only who led a rendezvous keeps the rings, and takes them when it leads again. Of communicators
// that are gone it keeps one's, and that only while it has another: the process of a closed job has
// nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
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
  ///
  /// @returns for the segment's Membership
  std::shared_ptr<void> keep(const JoinOptions&, const Segment&, File rings);
  /// As keep() returns, for who did not lead.
  std::shared_ptr<void> use();

 private:
  struct Spare {
    /// A child that was forked has them too, and is not to take them.
    int process;
    std::string job;
    /// Without memory.
    Segment shape;
    File rings;
    /// Of the segment that they are of or were of, and whether that is gone here.
    std::uint64_t segment;
    bool gone = false;
  };

  std::shared_ptr<void> useOf(std::uint64_t segment);
  void leave(std::uint64_t segment);

  std::mutex mutex_;
  std::list<Spare> spares_;  // the oldest first
  std::uint64_t segments_ = 0;
  /// Memberships of this process.
  std::size_t inUse_ = 0;
};

}  // namespace gradlink::shm
