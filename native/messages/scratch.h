// Reusable memory of calls.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "core/error.h"

namespace gradlink::messages {

class Scratch {
 public:
  /// At least this many bytes, 64-byte aligned; earlier contents are lost.
  std::byte* take(std::size_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    memory_.reset();
    bytes_ = 0;
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
    if (memory_ == nullptr) {
      throw Error(ErrorCode::outOfMemory,
                  "no memory for " + std::to_string(rounded) + " bytes of scratch");
    }
    bytes_ = rounded;
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace gradlink::messages
