// Wire memory for this worker's messages, last released first: a few cached buffers serve any
// array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/wire.h"

namespace gradlink::dist {

struct WireBuffer {
  void* memory;
  std::size_t bytes;
  /// The index of its free list; kOwn: not reused.
  std::size_t sizeClass;
  bool staged;
  /// The transfer that lends it; 0 for memory of the wire.
  std::uint64_t lender = 0;

  static constexpr std::size_t kOwn = ~std::size_t{0};
};

/// For one thread.
class WireBuffers {
 public:
  explicit WireBuffers(Wire& wire) : wire_(wire) {}

  /// At least `bytes`, 64-byte aligned. Throws Error(outOfMemory).
  WireBuffer* take(std::size_t bytes, bool staged);
  /// Wraps an array in the wire's memory; counts as staged. Returned by give().
  WireBuffer* lend(const void* memory, std::size_t bytes, std::uint64_t lender);
  void give(WireBuffer* buffer);
  /// Of staged buffers in use.
  std::size_t stagedBytes() const { return stagedBytes_; }

  static std::uint64_t ticketOf(const WireBuffer* buffer) {
    return reinterpret_cast<std::uintptr_t>(buffer);
  }
  static WireBuffer* ofTicket(std::uint64_t ticket) {
    return reinterpret_cast<WireBuffer*>(static_cast<std::uintptr_t>(ticket));
  }

 private:
  static constexpr std::size_t kSmallest = 256;
  static constexpr std::size_t kClasses = 11;  // to 256 KiB

  void grow(std::size_t sizeClass);

  Wire& wire_;
  std::array<std::vector<WireBuffer*>, kClasses> free_;
  std::array<std::size_t, kClasses> made_{};
  std::vector<std::unique_ptr<WireBuffer>> buffers_;
  std::vector<WireBuffer*> freeLent_;
  std::size_t stagedBytes_ = 0;
};

}  // namespace gradlink::dist
