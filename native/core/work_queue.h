// One thread that runs tasks in the order they were given: each communicator has one, so that JavaScript never
// blocks and order of issue is order of execution.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gradlink {

class WorkQueue {
 public:
  WorkQueue() = default;
  /// Runs what is queued, then joins.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// The thread starts with the first task, so that synchronous users never pay for it.
  void post(std::function<void()> task);
  /// Nothing queued and nothing running: a synchronous call may run on the caller's own thread.
  bool idle() const;
  /// Waits until everything posted so far has run, then joins the thread. Idempotent.
  void drain();

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gradlink
