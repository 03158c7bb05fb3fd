// Schedules a store's work: lanes of ordered operations, priorities, threads that share parts.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kvstore/key.h"
#include "kvstore/queue.h"
#include "kvstore/store.h"

namespace gradlink {

struct KeyItem : Admission {
  Operation operation;
  /// Approximate bytes that it moves: decides how many threads are woken.
  std::size_t bytes = 0;
  /// Bytes of all the store's arrays: what is accessed before its results are read again.
  std::size_t touched = 0;
};
// It is large, so queues pass pointers.
using KeyItemPtr = std::unique_ptr<KeyItem>;
inline OperationKind kindOf(const KeyItemPtr& item) { return item->operation.kind; }
inline std::int32_t priorityOf(const KeyItemPtr& item) { return item->operation.priority; }

/// Operations of one lane that are executed together, in consecutive phases of parallel parts.
class Work {
 public:
  struct Phase {
    std::size_t parts;
    /// Nothing to run: Scheduler::resume continues the work.
    bool waits = false;
  };

  virtual ~Work() = default;
  /// Ends the current phase, if any, and begins the next; nullopt after the last. Called by one
  /// thread at a time. An exception ends the work and is its items' error.
  virtual std::optional<Phase> next() = 0;
  virtual void run(std::size_t part) = 0;

  std::vector<KeyItemPtr> items;

 private:
  friend class Scheduler;
  class Lane* lane_ = nullptr;
  Urgency urgency_;
  // Of the current phase: the next part to take, the number of parts, and of unfinished ones.
  std::size_t nextPart_ = 0;
  std::size_t parts_ = 0;
  std::size_t unended_ = 0;
  bool waiting_ = false;
  bool resumed_ = false;
  std::exception_ptr error_;
};

class Lane : public Key {
 public:
  explicit Lane(Key key) : Key(std::move(key)) {}
  virtual ~Lane() = default;
  /// Fixes what depends on the order of submission. Called under the lock when an item is queued.
  virtual void admit(KeyItem&) = 0;
  /// Takes items off the front of the queue as one work. Called under the lock.
  virtual std::unique_ptr<Work> plan() = 0;

  KeyQueue<KeyItemPtr> queue;

 private:
  friend class Scheduler;
  std::unique_ptr<Work> work_;
};

class Scheduler {
 public:
  using Submission = std::vector<std::pair<Lane*, KeyItemPtr>>;

  Scheduler() = default;
  ~Scheduler() { stop(); }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Queues each item on its lane. `here`: run small ones on this thread if nothing is pending.
  void submit(Submission submission, bool here);
  /// Runs `body` under the lock after all earlier submissions were admitted and before any later
  /// one: for settings that operations depend on.
  void apply(std::function<void()> body);
  /// Runs `body` after all earlier submissions are done and before any later one begins.
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket);
  /// Continues a waiting work. Thread-safe; may come before the wait has begun.
  void resume(Work& work, std::exception_ptr error);
  /// Drops queued work and waits for running work. Idempotent.
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Takes the lock, spinning first.
  static void relock(Lock& lock);
  void serve();
  void workNarrow(Lock& lock);
  void workWide();
  bool claimable() const;
  bool wantsWide() const;
  bool step(Lock& lock);
  void startLane(Lane& lane, Lock& lock);
  void runPart(Work& work, Lock& lock);
  void advance(Work& work, Lock& lock);
  void publish(Work& work, std::size_t parts);
  void runFence(Lock& lock);
  void finish(Work& work);
  void admit(std::pair<Lane*, KeyItemPtr>&& request);
  void startThread();

  std::mutex mutex_;
  std::condition_variable wake_;
  Queue<Lane, std::pair<Lane*, KeyItemPtr>> queue_;  // a lane with work in progress is blocked
  std::vector<Work*> active_;    // works with unclaimed parts, the most urgent first
  std::vector<Work*> resumed_;   // works whose wait has ended
  std::size_t queuedBytes_ = 0;  // of items on lanes
  bool regroup_ = false;  // a thread of this round found nothing: all return, so that the next
                          // round has all again
  bool stopping_ = false;
  std::thread thread_;  // last: the rest outlives it
};

}  // namespace gradlink
