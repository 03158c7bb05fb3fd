#include "cuda/pauses.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace gradlink::cuda {
namespace {

using namespace std::chrono_literals;

/// A batch of a store, or a collective, is mostly over within this; a thread that slept would wake later.
constexpr auto kPolling = 1ms;
/// What takes 10 ms is noticed late by half of this, half a hundredth.
constexpr auto kLongest = 100us;

}  // namespace

std::chrono::nanoseconds pauseAfter(std::chrono::nanoseconds waited) {
  if (waited < kPolling) return 0ns;
  // A sixteenth of what was waited already: late by no more than that share.
  return std::min<std::chrono::nanoseconds>(waited / 16, kLongest);
}

void wakePrecisely() {
  thread_local bool done = false;
  if (done) return;
  done = true;
  // Where it is refused, sleeps are longer.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));
}

void pauseFor(std::chrono::nanoseconds pause) {
  if (pause == 0ns) return std::this_thread::yield();
  wakePrecisely();
  std::this_thread::sleep_for(pause);
}

}  // namespace gradlink::cuda
