// Waiting for another rank: a short spin, then yielding, then a futex with bounded sleeps. The slow
// part also looks at what can end a wait early: the deadline, an abort, a peer that died.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/deadline.h"
#include "core/futex.h"

namespace gradlink::shm {

/// A counter that one side raises and others wait for. Lives in memory that ranks share; zero bytes
/// are a valid one.
struct Flag {
  std::atomic<std::uint32_t> value;
  /// Threads asleep on `value`: who raises it pays for a system call only when there are some.
  std::atomic<std::uint32_t> sleepers;
};

/// Counters wrap: compared by distance.
inline bool reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}

/// How long one call may take. The clock starts when it is first asked: where nobody has to be
/// waited for that saves its reading, which takes as long as the rest of an 8-byte call.
class CallTimeout {
 public:
  explicit CallTimeout(double milliseconds, const char* name = nullptr)
      : milliseconds_(milliseconds), name_(name) {}
  /// The clock runs already.
  explicit CallTimeout(Deadline deadline) : milliseconds_(0), started_(true), deadline_(deadline) {}
  Deadline deadline() {
    if (!started_) deadline_ = Deadline::in(milliseconds_);
    started_ = true;
    return deadline_;
  }
  /// What its caller named the call; null: nothing.
  const char* name() const { return name_; }

 private:
  double milliseconds_;
  const char* name_ = nullptr;
  bool started_ = false;
  Deadline deadline_ = Deadline::never();
};

/// What ends a wait early.
class Watch {
 public:
  explicit Watch(CallTimeout& callTimeout) : callTimeout(callTimeout) {}
  /// Whether waiting on has become pointless. Called seldom.
  virtual bool troubled() = 0;
  /// Throws what troubled() found. Only called when the awaited did not come even so: what a rank
  /// did before it left or died counts.
  [[noreturn]] virtual void fail() = 0;

  CallTimeout& callTimeout;

 protected:
  ~Watch() = default;
};

class Waiter {
 public:
  /// `shared`: the flags are in memory of several processes. `ownCores`: every rank has a core.
  Waiter(bool shared, bool ownCores);

  void publish(Flag& flag, std::uint32_t value) const {
    // An exchange is a full barrier: the new value is visible before the sleepers are looked at,
    // and a sleeper counts itself before it looks at the value, so one of the two sees the other.
    flag.value.exchange(value, std::memory_order_seq_cst);
    if (flag.sleepers.load(std::memory_order_seq_cst) != 0) wake(flag);
  }
  /// For flags that several ranks raise.
  void raise(Flag& flag) const {
    flag.value.fetch_add(1, std::memory_order_seq_cst);
    if (flag.sleepers.load(std::memory_order_seq_cst) != 0) wake(flag);
  }
  void wake(Flag& flag) const;

  void await(Flag& flag, std::uint32_t target, Watch& watch) const {
    awaitWhen(
        flag, [&] { return reached(flag.value.load(std::memory_order_acquire), target); }, watch);
  }

  /// Until ready() is true, which can become so only with a change of the flag's value.
  template <class Ready>
  void awaitWhen(Flag& flag, Ready ready, Watch& watch) const {
    if (!spin(ready)) slow(flag, call<Ready>, &ready, watch);
  }
  /// As awaitWhen, for who has nobody to blame: whether it became ready before `until`.
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
  /// Asleep for at most `nanoseconds`; whether ready.
  bool nap(Flag& flag, bool (*ready)(void*), void* context, long nanoseconds) const;

  static constexpr int kFewestSpins = 20;

  bool shared_;
  /// 0 where ranks share cores.
  double spinNanoseconds_;
  int mostSpins_;
  int yields_;
  /// Learned: the awaited rank may share this core for a while even where there are cores enough,
  /// and every turn of the loop then keeps it from running. Atomic only for abort() and the like on
  /// other threads.
  mutable std::atomic<int> spins_;
};

}  // namespace gradlink::shm
