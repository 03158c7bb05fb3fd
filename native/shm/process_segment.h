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

/// A new segment for `size` ranks, readable and writable by this user alone.
File makeSegmentFile(int size, std::size_t slotBytes);

/// Maps the segment as `rank` and takes that rank's lock. `file` may be one that was passed from
/// another process.
Membership enterSegment(const File& file, int rank);

}  // namespace gradlink::shm
