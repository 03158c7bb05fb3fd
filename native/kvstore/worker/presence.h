// For a worker that waits for long: asks the servers, and blames those that do not answer within
// the deadline. A server that answers may wait for a worker, and blames that one in time.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/deadline.h"

namespace gradlink::dist {

class Presence {
 public:
  using Clock = Deadline::Clock;

  Presence(int servers, double timeoutMs)
      : timeoutMs_(timeoutMs), heard_(static_cast<std::size_t>(servers)) {}

  void heard(int server, Clock::time_point now) { heard_[static_cast<std::size_t>(server)] = now; }

  /// Whether to ask all servers now, once for each wait. `begun`: since when the worker waits.
  bool ask(Clock::time_point begun, Clock::time_point now) {
    if (milliseconds(now - begun) < kAskAfter * timeoutMs_ || asked_ >= begun) return false;
    asked_ = now;
    return true;
  }

  /// The servers that did not answer; empty unless the deadline is near. They precede servers that
  /// wait for workers waiting for them: the deadlines are equal.
  std::vector<int> silent(Clock::time_point begun, Clock::time_point now) const {
    std::vector<int> servers;
    if (asked_ < begun || milliseconds(now - begun) < kBlameAfter * timeoutMs_) return servers;
    if (milliseconds(now - asked_) < std::max(kTimeToAnswer * timeoutMs_, kLeastMs)) return servers;
    for (std::size_t server = 0; server < heard_.size(); ++server) {
      if (heard_[server] < asked_) servers.push_back(static_cast<int>(server));
    }
    return servers;
  }

 private:
  // Shares of the deadline.
  static constexpr double kAskAfter = 0.5;
  static constexpr double kBlameAfter = 0.9;
  static constexpr double kTimeToAnswer = 0.3;
  /// What a server on a busy machine may need, however short the deadline.
  static constexpr double kLeastMs = 500;

  static double milliseconds(Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  const double timeoutMs_;
  std::vector<Clock::time_point> heard_;
  Clock::time_point asked_{};
};

}  // namespace gradlink::dist
