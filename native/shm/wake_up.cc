#include "shm/wake_up.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/futex.h"

namespace gradlink::shm {
namespace {

using Clock = std::chrono::steady_clock;

// Odd, for the median.
constexpr int kRounds = 3;
// Until the other thread sleeps and its core is idle: systems poll for a while first.
constexpr std::chrono::microseconds kRest(400);
// Other work that keeps cores awake hides costs: system calls and lost caches take this long.
constexpr double kShortestNanoseconds = 25e3;
// Some 200 us and more: the sleeper's core has other work.
constexpr int kSpinsForSleeper = 20000;
// No wait should keep a core busy for longer.
constexpr double kLongestNanoseconds = 150e3;

double since(Clock::time_point begun) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
}

/// Moves the calling thread to other cores if possible.
void leaveCore(int core) {
  cpu_set_t cores;
  if (core < 0 || sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  CPU_CLR(core, &cores);
  if (CPU_COUNT(&cores) > 0) sched_setaffinity(0, sizeof cores, &cores);
}

double measurePause() {
  constexpr int kTurns = 1000;
  const auto begun = Clock::now();
  for (int i = 0; i < kTurns; ++i) cpuRelax();
  return since(begun) / kTurns;
}

double measureWakeUp() {
  std::atomic<std::uint32_t> round{0};
  std::atomic<int> woken{0};
  std::array<double, kRounds> took{};
  std::array<Clock::time_point, kRounds> called{};
  const int own = sched_getcpu();
  std::thread sleeper([&] {
    leaveCore(own);
    for (int i = 0; i < kRounds; ++i) {
      const auto seen = static_cast<std::uint32_t>(i);
      while (round.load(std::memory_order_acquire) == seen) futexWait(round, seen);
      took[static_cast<std::size_t>(i)] = since(called[static_cast<std::size_t>(i)]);
      woken.store(i + 1, std::memory_order_release);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    std::this_thread::sleep_for(kRest);
    called[static_cast<std::size_t>(i)] = Clock::now();
    round.store(static_cast<std::uint32_t>(i) + 1, std::memory_order_release);
    futexWake(&round);
    // A yield would make room for the sleeper on this core, which is awake.
    for (int spins = 0; woken.load(std::memory_order_acquire) <= i; ++spins) {
      if (spins < kSpinsForSleeper) {
        cpuRelax();
      } else {
        std::this_thread::yield();
      }
    }
  }
  sleeper.join();
  std::nth_element(took.begin(), took.begin() + kRounds / 2, took.end());
  return took[kRounds / 2];
}

}  // namespace

const WakeUp& wakeUp() {
  static const WakeUp measured{measureWakeUp(), measurePause()};
  return measured;
}

double spinNanoseconds(const WakeUp& wakeUp) {
  return std::clamp(wakeUp.nanoseconds, kShortestNanoseconds, kLongestNanoseconds);
}

int spinsFor(const WakeUp& wakeUp) {
  return static_cast<int>(spinNanoseconds(wakeUp) / std::max(wakeUp.pauseNanoseconds, 1.0));
}

}  // namespace gradlink::shm
