#include "shm/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "shm/wake_up.h"

namespace gradlink::shm {
namespace {

// With a core for each rank, spinning for a few microseconds is cheaper than waking up. With shared
// cores the awaited rank may need this core.
constexpr int kSpinsOversubscribed = 20;
// A yield gives the core to another ready rank and costs some 0.3 us if there is none.
constexpr int kYieldsWithOwnCore = 50;
constexpr int kYieldsOversubscribed = 200;
constexpr std::chrono::microseconds kLongYield(30);
// A longer yield has let another thread run.
constexpr std::chrono::microseconds kSharedYield(3);
// How long a sleeper may miss a killed peer, an abort or the deadline, which raise no flag.
constexpr std::chrono::milliseconds kNap(10);

}  // namespace

Waiter::Waiter(bool shared, bool ownCores)
    : shared_(shared),
      spinNanoseconds_(ownCores ? spinNanoseconds(wakeUp()) : 0),
      mostSpins_(ownCores ? spinsFor(wakeUp()) : kSpinsOversubscribed),
      yields_(ownCores ? kYieldsWithOwnCore : kYieldsOversubscribed),
      spins_(mostSpins_) {}

void Waiter::wake(Flag& flag) const {
  const int op = shared_ ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
  syscall(SYS_futex, &flag.value, op, INT_MAX, nullptr, nullptr, 0);
}

void Waiter::slow(Flag& flag, bool (*ready)(void*), void* context, Watch& watch) const {
  using Clock = std::chrono::steady_clock;
  const Deadline deadline = watch.callTimeout.deadline();
  // With shared cores nothing is learned and the clock is not needed.
  const bool learns = spinNanoseconds_ > 0;
  const auto begun = Clock::now();
  bool alone = true;
  auto before = begun;
  for (int i = 0; i < yields_; ++i) {
    sched_yield();
    const auto after = learns ? Clock::now() : begun;
    alone = alone && after - before < kSharedYield;
    before = after;
    if (ready(context)) return learn(after - begun, alone);
  }
  // Checked at once: the peer may be gone already.
  Clock::time_point nextCheck{};
  for (;;) {
    const auto now = Clock::now();
    if (now >= nextCheck) {
      if (watch.troubled()) {
        if (ready(context)) return;
        watch.fail();
      }
      nextCheck = now + kNap;
    }
    const auto end = std::min(nextCheck, deadline.at());
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - now).count();
    if (nap(flag, ready, context, left)) return learn(Clock::now() - begun, alone);
    if (deadline.passed()) nextCheck = {};
  }
}

/// A wait about as long as a wake-up should have spun; unless a yield gave the core to another
/// thread, which may be the awaited one.
void Waiter::learn(std::chrono::nanoseconds waited, bool alone) const {
  if (spinNanoseconds_ == 0 || !alone) return;
  if (static_cast<double>(waited.count()) > 2 * spinNanoseconds_) return;
  const int spins = spins_.load(std::memory_order_relaxed);
  spins_.store(std::min(4 * spins, mostSpins_), std::memory_order_relaxed);
}

bool Waiter::doze(Flag& flag, bool (*ready)(void*), void* context,
                  Deadline::Clock::time_point until) const {
  auto before = Deadline::Clock::now();
  for (int i = 0; i < yields_; ++i) {
    sched_yield();
    if (ready(context)) return true;
    // Another thread needs this core: sleeping returns the core sooner than yielding.
    const auto after = Deadline::Clock::now();
    if (after - before > kLongYield) break;
    before = after;
  }
  for (;;) {
    const auto now = Deadline::Clock::now();
    if (now >= until) return ready(context);
    const auto end = std::min(until, now + kNap);
    if (nap(flag, ready, context,
            std::chrono::duration_cast<std::chrono::nanoseconds>(end - now).count())) {
      return true;
    }
  }
}

bool Waiter::nap(Flag& flag, bool (*ready)(void*), void* context, long nanoseconds) const {
  const int op = shared_ ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
  const timespec longest{0, std::max(nanoseconds, 1L)};
  flag.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t seen = flag.value.load(std::memory_order_seq_cst);
  const bool done = ready(context);
  if (!done) syscall(SYS_futex, &flag.value, op, seen, &longest, nullptr, 0);
  flag.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return done || ready(context);
}

}  // namespace gradlink::shm
