// Limits the bytes of unread pushes. A few cached pieces suffice while servers release them as they
// come. In a synchronous store servers may wait for other workers, perhaps for keys that this one
// would push next; so a stalled window grows.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/deadline.h"

namespace gradlink::dist {

class PushWindow {
 public:
  explicit PushWindow(std::size_t mostBytes)
      : most_(mostBytes), first_(std::min(kFirst, mostBytes)), bytes_(first_) {}

  /// Whether `bytes` more may be staged.
  bool takes(std::size_t bytes, std::size_t staged) const {
    return staged == 0 || staged + bytes <= bytes_;
  }
  /// Something was released; `staged` bytes remain.
  void released(std::size_t staged, Deadline::Clock::time_point now) {
    progress_ = now;
    if (staged == 0) bytes_ = first_;
  }
  void staged(Deadline::Clock::time_point now) { progress_ = now; }
  /// When to try again after takes() returned false.
  Deadline::Clock::time_point timeoutEnds() const {
    return progress_ + (bytes_ < most_ ? kStall : kLongStall);
  }
  /// Grows if nothing has been released for a while; beyond the maximum slowly: if workers push
  /// keys in different orders, a fixed limit could be a deadlock.
  void look(Deadline::Clock::time_point now) {
    if (now < timeoutEnds()) return;
    bytes_ = bytes_ < most_ ? std::min(2 * bytes_, most_) : bytes_ + bytes_ / 4;
    progress_ = now;
  }

 private:
  static constexpr std::size_t kFirst = 2 << 20;
  static constexpr auto kStall = std::chrono::microseconds(300);
  static constexpr auto kLongStall = std::chrono::milliseconds(20);

  std::size_t most_;
  std::size_t first_;
  std::size_t bytes_;
  Deadline::Clock::time_point progress_{};
};

}  // namespace gradlink::dist
