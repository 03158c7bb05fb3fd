// Waiting for MPI, which offers only looking: first without pause, then giving the core to others
// between looks, then sleeping for a share of the time waited so far. What sleeping adds to a wait
// is bounded by that share, and what looking costs by the longest sleep.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/deadline.h"

namespace gradlink::messages {

class Pause {
 public:
  /// After a look that found nothing. True now and then: time to look at what can end the wait,
  /// too.
  bool after() {
    if (++looks_ < most_) return false;
    return slow();
  }
  /// Something came: what comes next is likely to be near.
  void reset() {
    looks_ = 0;
    sleeping_ = false;
  }
  /// As after(), for those who sleep in their own way: for how long now; 0: not yet.
  std::chrono::nanoseconds nap();

 private:
  bool slow();

  /// Looks without pause.
  static std::uint32_t mostLooks();

  const std::uint32_t most_ = mostLooks();
  std::uint32_t looks_ = 0;
  bool sleeping_ = false;
  Deadline::Clock::time_point since_;
};

}  // namespace gradlink::messages
