// Waiting for another rank: a short spin, then yielding, then a futex with bounded sleeps. The slow
// part also looks at what can end a wait early: the deadline, an abort, a peer that died.
#pragma once

#include <atomic>
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

/// What ends a wait early.
class Watch {
 public:
  explicit Watch(Deadline deadline) : deadline(deadline) {}
  /// Whether waiting on has become pointless. Called seldom.
  virtual bool troubled() = 0;
  /// Throws what troubled() found. Only called when the awaited did not come even so: what a rank
  /// did before it left or died counts.
  [[noreturn]] virtual void fail() = 0;

  const Deadline deadline;

 protected:
  ~Watch() = default;
};

class Waiter {
 public:
  /// `shared`: the flags are in memory of several processes. `ranks`: how many wait for one another
  /// on this host.
  Waiter(bool shared, int ranks);

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
    for (int i = 0; i < spins_; ++i) {
      if (ready()) return;
      cpuRelax();
    }
    slow(
        flag, [](void* context) -> bool { return (*static_cast<Ready*>(context))(); }, &ready,
        watch);
  }

 private:
  void slow(Flag& flag, bool (*ready)(void*), void* context, Watch& watch) const;

  bool shared_;
  int spins_;
  int yields_;
};

}  // namespace gradlink::shm
