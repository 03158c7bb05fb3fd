// Keeps the rings of communicators between processes for later ones of the same job, size and
// slots: first touches of new pages are slow.
//
// Only the leader of a rendezvous keeps the rings, and reuses them when it leads again. Rings of
// one ended communicator are kept while another is open, so a closed job keeps nothing.
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

class SpareRings {
 public:
  static SpareRings& ofProcess();

  /// Rings that all their ranks are done with, if there are any.
  File take(const JoinOptions&);
  /// Keeps the rings of a segment that all ranks have entered, up to a limit; the oldest are
  /// dropped.
  ///
  /// @returns for the segment's Membership
  std::shared_ptr<void> keep(const JoinOptions&, const Segment&, File rings);
  /// The same for ranks that did not lead.
  std::shared_ptr<void> use();

 private:
  struct Spare {
    /// A forked child must not use them.
    int process;
    std::string job;
    /// Without memory.
    Segment shape;
    File rings;
    /// The segment that the rings belong or belonged to, and whether this process has left it.
    std::uint64_t segment;
    bool gone = false;
  };

  std::shared_ptr<void> useOf(std::uint64_t segment);
  void leave(std::uint64_t segment);

  std::mutex mutex_;
  std::list<Spare> spares_;  // the oldest first
  std::uint64_t segments_ = 0;
  std::size_t inUse_ = 0;
};

}  // namespace gradlink::shm
