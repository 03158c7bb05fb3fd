// The segment of processes: a memfd, so that it has no name and goes with its last user, however
// that ends; and a lock on a byte of it for each rank, which the kernel drops when the rank's
// process ends.
#pragma once

#include <cstddef>
#include <memory>

#include "shm/session.h"

namespace gradlink::shm {

/// An open file, closed with it.
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

/// What a segment consists of: the rings have a file of their own, so that their pages can outlive
/// it.
struct SegmentFiles {
  File control;
  File rings;
  explicit operator bool() const { return control && rings; }
};

/// A new segment for `size` ranks, readable and writable by this user alone. `rings`: those of an
/// ended segment for as many ranks and as large slots; without, new ones.
SegmentFiles makeSegmentFiles(int size, std::size_t slotBytes, File rings = File());

/// Maps the segment as `rank` and takes that rank's lock. The files may have been passed from
/// another process.
Membership enterSegment(const SegmentFiles& files, int rank);

}  // namespace gradlink::shm
