// A point on the monotonic clock after which waiting is an error.
#pragma once

#include <chrono>
#include <limits>

namespace gradlink {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// Milliseconds from now; infinity waits forever.
  static Deadline in(double milliseconds) {
    Deadline deadline;
    if (milliseconds < std::numeric_limits<double>::max() && milliseconds < 1e12) {
      deadline.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double, std::milli>(milliseconds));
    }
    return deadline;
  }
  static Deadline never() { return Deadline(); }

  bool passed() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

 private:
  Clock::time_point at_ = Clock::time_point::max();
};

inline double secondsSince(Deadline::Clock::time_point begin) {
  return std::chrono::duration<double>(Deadline::Clock::now() - begin).count();
}

}  // namespace gradlink
