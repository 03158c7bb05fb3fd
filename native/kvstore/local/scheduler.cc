#include "kvstore/local/scheduler.h"

#include <algorithm>

#include "core/futex.h"
#include "core/thread_pool.h"

namespace gradlink {
namespace {

// Below this, waking another thread (about 7 us) costs more than it saves.
constexpr std::size_t kWideBytes = 256 * 1024;
// Below this, the caller's thread is done before the store's thread could wake up.
constexpr std::size_t kHereBytes = 64 * 1024;

// Spins for the lock, some 20 us: it is held for less, and a wake-up may take as long as a part.
constexpr int kLockSpins = 500;

}  // namespace

void Scheduler::relock(Lock& lock) {
  for (int spins = 0; spins < kLockSpins; ++spins) {
    if (lock.try_lock()) return;
    cpuRelax();
  }
  lock.lock();
}

void Scheduler::startThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
}

void Scheduler::admit(std::pair<Lane*, KeyItemPtr>&& request) {
  auto& [lane, item] = request;
  queuedBytes_ += item->bytes;
  lane->admit(*item);
  queue_.join(*lane, std::move(item));
}

void Scheduler::submit(Submission submission, bool here) {
  Lock lock(mutex_);
  if (stopping_) return;
  for (auto& [lane, item] : submission) item->operation.ticket->expect();
  if (queue_.holds()) {
    for (auto& request : submission) queue_.hold({std::move(request), nullptr, nullptr});
    return;  // the thread that runs the fence continues with these
  }
  const bool idle = queue_.unfinished() == 0;
  for (auto& request : submission) admit(std::move(request));
  if (here && idle && queuedBytes_ <= kHereBytes) workNarrow(lock);
  if (!claimable()) return;
  startThread();
  lock.unlock();
  wake_.notify_one();
}

void Scheduler::apply(std::function<void()> body) {
  const Lock lock(mutex_);
  if (stopping_) return;
  queue_.add(queue_.settingOf(std::move(body)),
             [this](auto&& request) { admit(std::forward<decltype(request)>(request)); });
}

void Scheduler::fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) {
  Lock lock(mutex_);
  if (stopping_) return;
  ticket->expect();
  queue_.hold(queue_.fenceOf({std::move(body), std::move(ticket)}));
  if (!queue_.fenceReady()) return;
  startThread();
  lock.unlock();
  wake_.notify_one();
}

void Scheduler::resume(Work& work, std::exception_ptr error) {
  Lock lock(mutex_);
  if (stopping_) return;
  work.error_ = std::move(error);
  if (!work.waiting_) {
    work.resumed_ = true;  // advance() will see it
    return;
  }
  work.waiting_ = false;
  resumed_.push_back(&work);
  startThread();
  lock.unlock();
  wake_.notify_one();
}

void Scheduler::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool Scheduler::claimable() const {
  return !queue_.empty() || !active_.empty() || !resumed_.empty() || queue_.fenceReady();
}

bool Scheduler::wantsWide() const {
  return queuedBytes_ >= kWideBytes || !active_.empty() || !resumed_.empty();
}

void Scheduler::serve() {
  Lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || claimable(); });
    if (stopping_) return;
    if (!wantsWide()) {
      workNarrow(lock);
      continue;
    }
    regroup_ = false;
    lock.unlock();
    ThreadPool& pool = ThreadPool::shared();
    pool.parallel(static_cast<std::size_t>(pool.width()), [this](std::size_t) { workWide(); });
    lock.lock();
  }
}

void Scheduler::workNarrow(Lock& lock) {
  while (!stopping_ && !wantsWide() && step(lock)) {
  }
}

void Scheduler::workWide() {
  Lock lock(mutex_);
  while (!stopping_ && !regroup_) {
    if (!step(lock)) regroup_ = true;
  }
}

/// Takes and runs the most urgent part; false if there is none.
bool Scheduler::step(Lock& lock) {
  if (!resumed_.empty()) {
    Work* const work = resumed_.back();
    resumed_.pop_back();
    if (work->error_) {
      finish(*work);
    } else {
      advance(*work, lock);
    }
    return true;
  }
  Work* const active = active_.empty() ? nullptr : active_.front();
  Lane* const lane = queue_.soonest();
  if (active && (!lane || !lane->queue.urgency().soonerThan(active->urgency_))) {
    runPart(*active, lock);
    return true;
  }
  if (lane) {
    startLane(*lane, lock);
    return true;
  }
  if (queue_.fenceReady()) {
    runFence(lock);
    return true;
  }
  return false;
}

void Scheduler::startLane(Lane& lane, Lock& lock) {
  queue_.block(lane);
  lane.work_ = lane.plan();
  Work& work = *lane.work_;
  work.lane_ = &lane;
  work.urgency_ = lane.queue.urgency();
  for (const KeyItemPtr& item : work.items) queuedBytes_ -= item->bytes;
  advance(work, lock);
}

void Scheduler::runPart(Work& work, Lock& lock) {
  const std::size_t part = work.nextPart_++;
  if (work.nextPart_ == work.parts_) std::erase(active_, &work);
  std::exception_ptr error;
  lock.unlock();
  try {
    work.run(part);
  } catch (...) {
    error = std::current_exception();
  }
  relock(lock);
  if (error && !work.error_) work.error_ = std::move(error);
  if (--work.unended_ > 0) return;
  if (work.error_) {
    finish(work);
  } else {
    advance(work, lock);
  }
}

/// Begins the next phase; runs phases of one part at once.
void Scheduler::advance(Work& work, Lock& lock) {
  for (;;) {
    std::optional<Work::Phase> phase;
    std::exception_ptr error;
    lock.unlock();
    try {
      while ((phase = work.next()) && !phase->waits && phase->parts <= 1) {
        if (phase->parts == 1) work.run(0);
      }
    } catch (...) {
      error = std::current_exception();
    }
    relock(lock);
    if (error || !phase) {
      if (error) work.error_ = std::move(error);
      return finish(work);
    }
    if (!phase->waits) return publish(work, phase->parts);
    if (!work.resumed_) {
      work.waiting_ = true;
      return;
    }
    work.resumed_ = false;
    if (work.error_) return finish(work);
  }
}

void Scheduler::publish(Work& work, std::size_t parts) {
  work.nextPart_ = 0;
  work.parts_ = work.unended_ = parts;
  const auto place = std::find_if(active_.begin(), active_.end(), [&](const Work* other) {
    return work.urgency_.soonerThan(other->urgency_);
  });
  active_.insert(place, &work);
}

void Scheduler::runFence(Lock& lock) {
  const Fence& fence = queue_.beginFence();
  lock.unlock();
  std::exception_ptr error = outcomeOf(fence.body);
  lock.lock();
  fence.ticket->finish(std::move(error));
  queue_.endFence([this](auto&& request) { admit(std::forward<decltype(request)>(request)); });
}

void Scheduler::finish(Work& work) {
  Lane& lane = *work.lane_;
  const std::unique_ptr<Work> ended = std::move(lane.work_);
  queue_.ended(work.items.size());
  queue_.release(lane);
  for (const KeyItemPtr& item : work.items) item->operation.ticket->finish(work.error_);
}

}  // namespace gradlink
