// How a distributed store's worker waits: for messages, for tasks, and where it need not wake up
// because who submits looks for the answers.

#include <algorithm>
#include <chrono>

#include "core/futex.h"
#include "kvstore/worker/engine.h"

namespace gradlink::dist {

using Clock = Deadline::Clock;

void DistEngine::wait(std::unique_lock<std::mutex>& lock) {
  if (transfers_.canSend() || (queue_.fenceWaits() && transfers_.unfinished() == 0)) {
    link_.poll(events_, Deadline::in(0));
    return;
  }
  // A barrier waits for workers, whatever they do: only operations are the servers' time.
  const bool waiting = transfers_.unfinished() > 0;
  const auto begun = Clock::now();
  // Who sends for this thread may begin a wait that has a limit.
  Deadline until = transfers_.nextLook();
  if (until.at() > begun + kLookEvery) {
    until = Deadline::in(std::chrono::duration<double, std::milli>(kLookEvery).count());
  }
  link_.setReceiptsMatter(transfers_.awaitsReceipts());
  asleep_.store(true);
  // Whoever brings a task now either is seen here or sees that it has to wake.
  if (hasTasks_.load() || stopping_.load()) until = Deadline::in(0);
  poll(lock, until);
  if (transfers_.unfinished() == 0) return;
  const auto from = waiting ? begun : std::max(begun, lastProgress_);
  addWait(std::chrono::duration<double>(Clock::now() - from).count());
}

void DistEngine::addWait(double seconds) {
  waitSeconds_.store(waitSeconds_.load(std::memory_order_relaxed) + seconds,
                     std::memory_order_relaxed);
}

/// Not asleep any more, and with the lock, when it returns or throws.
void DistEngine::poll(std::unique_lock<std::mutex>& lock, Deadline until) {
  struct Awake {
    ~Awake() {
      held.lock();
      asleep.store(false, std::memory_order_relaxed);
    }
    std::unique_lock<std::mutex>& held;
    std::atomic<bool>& asleep;
  };
  lock.unlock();
  const Awake awake{lock, asleep_};
  link_.poll(events_, until);
}

/// What comes next will be small too, by the look of it: who submits it sends it, and looks for the
/// answer.
bool DistEngine::mayRest() const {
  return options_.lookNanoseconds > 0 && small_.load(std::memory_order_relaxed) && !isWaiting() &&
         !queue_.fenceWaits() && !error_;
}

/// As wait(), where messages wake nobody: they are looked at by who submits, or in a while.
void DistEngine::rest(std::unique_lock<std::mutex>& lock) {
  resting_.store(1);
  asleep_.store(true);
  // Whoever brings a task now either is seen here or sees that it has to wake.
  if (!hasTasks_.load() && !stopping_.load()) {
    lock.unlock();
    futexWaitFor(resting_, 1, std::chrono::nanoseconds(kLookEvery).count());
    lock.lock();
  }
  resting_.store(0);
  asleep_.store(false);
  link_.poll(events_, Deadline::in(0));
}

void DistEngine::wakeThread() {
  if (resting_.exchange(0) != 0) {
    futexWake(&resting_);
  } else {
    link_.wake();
  }
}

bool DistEngine::look() {
  {
    const std::unique_lock lock(turn_, std::try_to_lock);
    if (!lock || !rests() || stopping_.load()) return false;
    guarded([&] {
      link_.poll(events_, Deadline::in(0));
      handleEvents();
      transfers_.sendSome();
    });
    const std::chrono::duration<double> looked = Clock::now() - lookedFrom_;
    if (isWaiting() && looked.count() * 1e9 < options_.lookNanoseconds) return true;
    addWait(looked.count());
    if (!isWaiting()) return false;
  }
  wakeThread();
  return false;
}

}  // namespace gradlink::dist
