// What it costs on this machine to wake a sleeping thread. Machines differ by ten and more: on some
// an idle core is at it in 3 us, on virtual ones it may take 100.
#pragma once

namespace gradlink::shm {

struct WakeUp {
  /// From the call that wakes to the first instruction of who slept, where its core was idle.
  double nanoseconds;
  /// One turn of a spin loop.
  double pauseNanoseconds;
};

/// Measured by the first caller, which takes about a millisecond and a thread.
const WakeUp& wakeUp();

/// For how long to spin before sleeping: who spins as long as a wake-up costs never waits more than
/// twice as long as who had known.
double spinNanoseconds(const WakeUp&);
/// That many turns.
int spinsFor(const WakeUp&);

}  // namespace gradlink::shm
