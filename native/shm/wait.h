// Waiting for another rank: a short spin, then yields, then a futex with bounded sleeps. The slow
// part also checks the deadline, aborts and dead peers.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/deadline.h"
#include "core/futex.h"

namespace gradlink::shm {

/// A counter in shared memory that one side raises and others wait for. Zero bytes are valid.
struct Flag {
  std::atomic<std::uint32_t> value;
  /// Threads asleep on `value`: raising needs a system call only if there are any.
  std::atomic<std::uint32_t> sleepers;
};

/// Counters wrap, so they are compared by distance.
inline bool reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}

/// How long one call may take. The clock starts at the first use: reading it takes as long as the
/// rest of an 8-byte call that does not wait.
class CallTimeout {
 public:
  explicit CallTimeout(double milliseconds, const char* name = nullptr)
      : milliseconds_(milliseconds), name_(name) {}
  explicit CallTimeout(Deadline deadline) : milliseconds_(0), started_(true), deadline_(deadline) {}
  Deadline deadline() {
    if (!started_) deadline_ = Deadline::in(milliseconds_);
    started_ = true;
    return deadline_;
  }
  /// The caller's name for the call, or null.
  const char* name() const { return name_; }

 private:
  double milliseconds_;
  const char* name_ = nullptr;
  bool started_ = false;
  Deadline deadline_ = Deadline::never();
};

/// Conditions that end a wait early.
class Watch {
 public:
  explicit Watch(CallTimeout& callTimeout) : callTimeout(callTimeout) {}
  /// Whether waiting is pointless. Called rarely.
  virtual bool troubled() = 0;
  /// Throws the reason of troubled(). Called only if the awaited event still has not happened: what
  /// a rank did before it died counts.
  [[noreturn]] virtual void fail() = 0;

  CallTimeout& callTimeout;

 protected:
  ~Watch() = default;
};

class Waiter {
 public:
  /// `shared`: flags are in memory of several processes. `ownCores`: every rank has a core.
  Waiter(bool shared, bool ownCores);

  void publish(Flag& flag, std::uint32_t value) const {
    // The exchange is a full barrier: the new value is visible before the sleepers are read. A
    // sleeper counts itself before it reads the value, so one of the two sees the other.
    flag.value.exchange(value, std::memory_order_seq_cst);
    if (flag.sleepers.load(std::memory_order_seq_cst) != 0) wake(flag);
  }
  void raise(Flag& flag) const {
    flag.value.fetch_add(1, std::memory_order_seq_cst);
    if (flag.sleepers.load(std::memory_order_seq_cst) != 0) wake(flag);
  }
  void wake(Flag& flag) const;

  void await(Flag& flag, std::uint32_t target, Watch& watch) const {
    awaitWhen(
        flag, [&] { return reached(flag.value.load(std::memory_order_acquire), target); }, watch);
  }

  /// Waits until ready() is true, which must change only with the flag's value.
  template <class Ready>
  void awaitWhen(Flag& flag, Ready ready, Watch& watch) const {
    if (!spin(ready)) slow(flag, call<Ready>, &ready, watch);
  }
  /// awaitWhen() without a Watch: returns whether it was ready before `until`.
  template <class Ready>
  bool awaitUntil(Flag& flag, Ready ready, Deadline::Clock::time_point until) const {
    return spin(ready) || doze(flag, call<Ready>, &ready, until);
  }

 private:
  template <class Ready>
  static bool call(void* ready) {
    return (*static_cast<Ready*>(ready))();
  }
  template <class Ready>
  bool spin(Ready& ready) const {
    const int spins = spins_.load(std::memory_order_relaxed);
    for (int i = 0; i < spins; ++i) {
      if (ready()) {
        if (i > spins / 2) spins_.store(std::min(2 * spins, mostSpins_), std::memory_order_relaxed);
        return true;
      }
      cpuRelax();
    }
    spins_.store(std::max(spins / 2, kFewestSpins), std::memory_order_relaxed);
    return false;
  }
  void slow(Flag& flag, bool (*ready)(void*), void* context, Watch& watch) const;
  bool doze(Flag& flag, bool (*ready)(void*), void* context,
            Deadline::Clock::time_point until) const;
  void learn(std::chrono::nanoseconds waited, bool alone) const;
  /// Sleeps for at most `nanoseconds`; returns whether ready.
  bool nap(Flag& flag, bool (*ready)(void*), void* context, long nanoseconds) const;

  static constexpr int kFewestSpins = 20;

  bool shared_;
  /// 0 if ranks share cores.
  double spinNanoseconds_;
  int mostSpins_;
  int yields_;
  /// Learned: even with enough cores the awaited rank may share this one for a while, and spinning
  /// keeps it from running. Atomic only because of abort() and the like on other threads.
  mutable std::atomic<int> spins_;
};

}  // namespace gradlink::shm
