// Zeroed memory for arrays, states and merge buffers: aligned to cache lines, on huge pages where
// it is large.
#pragma once

#include <cstddef>
#include <memory>

namespace gradlink {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws Error(outOfMemory).
  explicit AlignedBuffer(std::size_t bytes);

  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const;
    /// Of pages that are the system's; 0: of the C library.
    std::size_t mapped;
  };
  std::unique_ptr<void, Free> memory_{nullptr, Free{0}};
  std::size_t bytes_ = 0;
};

}  // namespace gradlink
