// The speed of each core: the same arithmetic on threads that are bound to one core each.
#pragma once

#include <vector>

namespace gradlink::measure {

struct CoreRatesOptions {
  /// The kernel's numbers of the cores; one thread each, all at once.
  std::vector<int> cores;
  int rounds = 15;
  double roundSeconds = 0.02;
};

/// By core, then by round.
struct CoreRates {
  /// Steps in a second of the thread's own processor time: lower with a reduced clock or stolen
  /// core.
  std::vector<double> stepsPerSecond;
  /// The share of time that the thread had the core, 0 to 1: lower if something else runs there.
  std::vector<double> shares;
};

/// Blocks for about rounds * roundSeconds. Throws invalidArgument for counts below 1 and cores that
/// this process may not use, and system if a thread cannot start.
CoreRates coreRates(const CoreRatesOptions&);

}  // namespace gradlink::measure
