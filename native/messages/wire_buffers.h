// Reusable buffers of a wire.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"

namespace gradlink::messages {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
/// 64-byte aligned.
struct WireBuffer {
  std::unique_ptr<std::byte, FreeMemory> memory;
  std::size_t capacity = 0;
  std::byte* data() const { return memory.get(); }
};

/// Thread-safe. Sizes are rounded up to powers of two; a few of each are kept.
class WireBuffers {
 public:
  WireBuffer take(std::size_t bytes) {
    const std::size_t capacity = std::bit_ceil(bytes < kLeast ? kLeast : bytes);
    {
      std::lock_guard lock(mutex_);
      auto& kept = classOf(capacity);
      if (!kept.empty()) {
        WireBuffer buffer = std::move(kept.back());
        kept.pop_back();
        return buffer;
      }
    }
    WireBuffer buffer;
    buffer.memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, capacity)));
    buffer.capacity = capacity;
    if (buffer.memory == nullptr) {
      throw Error(ErrorCode::outOfMemory,
                  "no memory for a message of " + std::to_string(bytes) + " bytes");
    }
    return buffer;
  }

  void give(WireBuffer buffer) {
    if (buffer.capacity == 0) return;
    std::lock_guard lock(mutex_);
    auto& kept = classOf(buffer.capacity);
    const std::size_t most =
        buffer.capacity <= kSmall ? kMostSmall : kMostLargeBytes / buffer.capacity;
    if (kept.size() < most) kept.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kLeast = 512;
  static constexpr std::size_t kSmall = 16 << 10;
  static constexpr std::size_t kMostSmall = 1024;
  static constexpr std::size_t kMostLargeBytes = 64 << 20;

  std::vector<WireBuffer>& classOf(std::size_t capacity) {
    return classes_[std::countr_zero(capacity)];
  }

  std::mutex mutex_;
  std::vector<WireBuffer> classes_[64];
};

}  // namespace gradlink::messages
