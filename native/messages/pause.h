// Waiting for MPI, which can only be polled: first by spinning, then with yields, then with sleeps.
// A share of the wait so far limits the latency, the longest sleep the polling cost.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/deadline.h"

namespace gradlink::messages {

class Pause {
 public:
  /// Call after a poll that found nothing. True now and then: check the other conditions, too.
  bool after() {
    if (++looks_ < most_) return false;
    return slow();
  }
  /// Call after progress: the next event is likely soon.
  void reset() {
    looks_ = 0;
    sleeping_ = false;
  }
  /// As after(), for callers with their own way to sleep: how long to sleep now, or 0.
  std::chrono::nanoseconds nap();

 private:
  bool slow();

  static std::uint32_t mostLooks();

  const std::uint32_t most_ = mostLooks();
  std::uint32_t looks_ = 0;
  bool sleeping_ = false;
  Deadline::Clock::time_point since_;
};

}  // namespace gradlink::messages
