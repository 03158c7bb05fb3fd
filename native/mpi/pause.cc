#include "mpi/pause.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace gradlink::mpi {
namespace {

using std::chrono::nanoseconds;

/// Yielding costs 0.3 us where nobody else wants the core, and lets a rank that shares it go on.
constexpr nanoseconds kYielding = std::chrono::microseconds(500);
/// A sleep is this share of the wait so far, and at most kLongest: an idle rank looks some 500
/// times a second.
constexpr int kShare = 8;
constexpr nanoseconds kLongest = std::chrono::milliseconds(2);
/// How often the rest is looked at while yielding.
constexpr std::uint32_t kRest = 64;

}  // namespace

nanoseconds Pause::nap() {
  if (++looks_ < kLooks) return nanoseconds(0);
  const auto now = Deadline::Clock::now();
  if (looks_ == kLooks) since_ = now;
  const nanoseconds waited = now - since_;
  if (waited < kYielding) {
    sched_yield();
    return nanoseconds(0);
  }
  return std::min(waited / kShare, kLongest);
}

bool Pause::slow() {
  const auto now = Deadline::Clock::now();
  if (looks_ == kLooks) since_ = now;
  const nanoseconds waited = now - since_;
  if (waited < kYielding) {
    sched_yield();
    return looks_ % kRest == 0;
  }
  std::this_thread::sleep_for(std::min(waited / kShare, kLongest));
  return true;
}

}  // namespace gradlink::mpi
