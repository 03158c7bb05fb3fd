// The segment of processes: a memfd, which has no name and goes with its last user, and a byte lock
// for each rank, which the kernel drops when the rank's process ends.
#pragma once

#include <cstddef>
#include <memory>

#include "shm/session.h"

namespace gradlink::shm {

class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  ~File();
  File(File&& other) noexcept : descriptor_(other.release()) {}
  File& operator=(File&& other) noexcept;
  int get() const { return descriptor_; }
  int release();
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// The files of a segment. The rings have their own, so their pages can be reused.
struct SegmentFiles {
  File control;
  File rings;
  explicit operator bool() const { return control && rings; }
};

/// A new segment for `size` ranks, accessible to this user only. `rings`: those of an ended segment
/// of the same size and slots, if any.
SegmentFiles makeSegmentFiles(int size, std::size_t slotBytes, File rings = File());

/// Maps the segment and takes the lock of `rank`. Another process may have passed the files.
Membership enterSegment(const SegmentFiles& files, int rank);

}  // namespace gradlink::shm
