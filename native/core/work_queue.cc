#include "core/work_queue.h"

#include <utility>

namespace gradlink {

WorkQueue::~WorkQueue() { drain(); }

void WorkQueue::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (serving_) {
    wake_.notify_one();
    return;
  }
  // A thread that drain() joins has left run()'s loop once serving_ is false: never two at once.
  stopping_ = false;
  serving_ = true;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    serving_ = false;
    tasks_.pop_back();
    throw;
  }
}

bool WorkQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty() && !running_;
}

void WorkQueue::drain() {
  // Held across the join: a second drain returns no earlier than the first.
  const std::lock_guard draining(drain_);
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) return;
    stopping_ = true;
    ended = std::move(thread_);
  }
  wake_.notify_one();
  ended.join();
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      serving_ = false;
      return;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    lock.unlock();
    task();
    // Destroyed before idle() becomes true: its captures are part of the task.
    task = nullptr;
    lock.lock();
    running_ = false;
  }
}

}  // namespace gradlink
