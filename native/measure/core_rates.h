// How much each core does: the same arithmetic on threads that are bound to one core each.
#pragma once

#include <vector>

namespace gradlink::measure {

struct CoreRatesOptions {
  /// Numbers of the kernel; a thread each, all at once.
  std::vector<int> cores;
  int rounds = 15;
  double roundSeconds = 0.02;
};

/// By core, then by round.
struct CoreRates {
  /// Steps of arithmetic in a second of the thread's own processor time: lower where the core's
  /// clock is held back, or where a hypervisor gives it to somebody else.
  std::vector<double> stepsPerSecond;
  /// Of the time in which the thread was given the core, 0 to 1: lower where something else runs
  /// there.
  std::vector<double> shares;
};

/// Blocks for about rounds * roundSeconds. Throws invalidArgument for counts below 1 and for a core
/// that this process may not use, and system where a thread cannot be started.
CoreRates coreRates(const CoreRatesOptions&);

}  // namespace gradlink::measure
