// Zeroed memory for arrays, states and buffers: aligned to cache lines, large ones on huge pages.
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
    /// Bytes mapped from the system; 0: from the C library.
    std::size_t mapped;
  };
  std::unique_ptr<void, Free> memory_{nullptr, Free{0}};
  std::size_t bytes_ = 0;
};

}  // namespace gradlink
