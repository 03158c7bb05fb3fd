// The measured cost of waking a thread: 3 us on some machines to 100 us on virtual ones.
#pragma once

namespace gradlink::shm {

struct WakeUp {
  /// From the wake-up call to the first instruction of the woken thread, on an idle core.
  double nanoseconds;
  double pauseNanoseconds;
};

/// Measured by the first caller, with a thread, in about a millisecond.
const WakeUp& wakeUp();

/// How long to spin before sleeping: as long as a wake-up costs is at most twice the optimum.
double spinNanoseconds(const WakeUp&);
/// The same in turns of the loop.
int spinsFor(const WakeUp&);

}  // namespace gradlink::shm
