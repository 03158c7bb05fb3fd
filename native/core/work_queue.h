// One thread that runs tasks in the order they were given: each communicator has one, so that
// JavaScript never blocks and order of issue is order of execution.
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

  /// The thread starts with the first task, so that synchronous users never pay for it. Tasks must
  /// not throw.
  void post(std::function<void()> task);
  /// Nothing queued and nothing running: a synchronous call may run on the caller's own thread.
  bool idle() const;
  /// Waits until everything posted so far has run, then joins the thread. Idempotent; a later post
  /// starts anew. Not from a task of this queue.
  void drain();

 private:
  void run();

  std::mutex drain_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;   // a task is being executed
  bool stopping_ = false;  // the thread leaves once the queue is empty
  bool serving_ = false;   // a thread takes tasks
  std::thread thread_;
};

}  // namespace gradlink
