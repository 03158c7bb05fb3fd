// Who works on what, and when: lanes of operations that stay in order, priorities between lanes,
// and threads that take large pieces of work part by part.
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

/// An operation with what was fixed when it was admitted.
struct KeyItem : Admission {
  Operation operation;
  /// Bytes that it moves, roughly: decides how many threads are woken.
  std::size_t bytes = 0;
  /// Results are larger than the caches and may bypass them.
  bool streaming = false;
};
// It is large: what is queued is passed on as a pointer.
using KeyItemPtr = std::unique_ptr<KeyItem>;
inline OperationKind kindOf(const KeyItemPtr& item) { return item->operation.kind; }
inline std::int32_t priorityOf(const KeyItemPtr& item) { return item->operation.priority; }

/// One or more operations of one lane that are executed together: phases that follow one another,
/// each cut into parts that run side by side.
class Work {
 public:
  struct Phase {
    std::size_t parts;
    /// Nothing to run: the work goes on when Scheduler::resume is called for it.
    bool waits = false;
  };

  virtual ~Work() = default;
  /// Ends the phase before, if any, and begins the next; nullopt when there is none left. Called by
  /// one thread at a time. What it throws ends the work and is its items' error.
  virtual std::optional<Phase> next() = 0;
  virtual void run(std::size_t part) = 0;

  /// What is done when this is.
  std::vector<KeyItemPtr> items;

 private:
  friend class Scheduler;
  class Lane* lane_ = nullptr;
  Urgency urgency_;
  // Of the current phase: the next part to take, how many there are, how many have not ended.
  std::size_t nextPart_ = 0;
  std::size_t parts_ = 0;
  std::size_t unended_ = 0;
  bool waiting_ = false;
  bool resumed_ = false;
  std::exception_ptr error_;
};

/// One key, and the operations on it in order.
class Lane : public Key {
 public:
  explicit Lane(Key key) : Key(std::move(key)) {}
  virtual ~Lane() = default;
  /// An item joins the queue: the time to fix what depends on the order of submission. The lock is
  /// held.
  virtual void admit(KeyItem&) = 0;
  /// Takes one or more items off the front of the queue and makes work of them. The lock is held.
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

  /// Queues each item on its lane. `here`: run them on this thread if they are small and nothing
  /// else is pending.
  void submit(Submission submission, bool here);
  /// Runs `body` after everything submitted before was admitted and before anything submitted later
  /// is, with the lock held: for settings that the operations go by.
  void apply(std::function<void()> body);
  /// Runs `body` when everything submitted before is done, and before anything submitted later
  /// begins.
  void fence(std::function<void()> body, std::shared_ptr<Ticket> ticket);
  /// Lets a waiting work go on. From any thread; may come before the wait has begun.
  void resume(Work& work, std::exception_ptr error);
  /// Drops what is queued and waits for what is running. Idempotent.
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Takes the lock, which is held for moments only.
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
  Queue<Lane, std::pair<Lane*, KeyItemPtr>> queue_;  // a lane with a work in progress is blocked
  std::vector<Work*> active_;                        // works with parts left to take, soonest first
  std::vector<Work*> resumed_;                       // works whose wait is over
  std::size_t queuedBytes_ = 0;                      // of items on lanes
  bool regroup_ = false;  // a thread of this round found nothing: all return, so that the next
                          // round has all again
  bool stopping_ = false;
  std::thread thread_;  // last: the rest outlives it
};

}  // namespace gradlink
