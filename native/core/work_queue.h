// One thread that runs a communicator's tasks in order, so JavaScript never blocks.
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
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// The first task starts the thread, so synchronous users never pay for it. Tasks must not throw.
  void post(std::function<void()> task);
  /// Whether nothing is queued or running: a synchronous call may then run on the caller's thread.
  bool idle() const;
  /// Waits for all tasks, then joins the thread; a later post starts another. Not from a task.
  void drain();

 private:
  void run();

  std::mutex drain_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;
  bool stopping_ = false;  // the thread ends once the queue is empty
  bool serving_ = false;   // a thread runs
  std::thread thread_;
};

}  // namespace gradlink
