#include "kvstore/local/scheduler.h"

#include <algorithm>

#include "core/futex.h"
#include "core/thread_pool.h"

namespace gradlink {
namespace {

// Below this, waking another thread (about 7 us) costs more than it saves.
constexpr std::size_t kWideBytes = 256 * 1024;
// Below this, the caller's own thread is done sooner than the store's thread would have woken up.
constexpr std::size_t kHereBytes = 64 * 1024;

// For how many turns a thread spins for the lock, some 20 us: it is held for less than one, and who
// sleeps on it pays for a wake-up, which on some machines is as long as a part.
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

void Scheduler::enqueue(Lane& lane, KeyItemPtr item) {
  ++unfinished_;
  queuedBytes_ += item->bytes;
  lane.admit(*item);
  const bool waits = !lane.queue_.empty();
  if (waits && !lane.work_ && priorityOf(item) > lane.urgency_.priority) ready_.erase(&lane);
  lane.queue_.add(std::move(item));
  lane.urgency_.priority = lane.queue_.priority();
  if (!waits) lane.urgency_.sequence = ++sequence_;
  if (!lane.work_) ready_.insert(&lane);
}

void Scheduler::makeReady(Lane& lane) {
  if (lane.queue_.empty()) return;
  lane.urgency_ = {lane.queue_.priority(), ++sequence_};
  ready_.insert(&lane);
}

void Scheduler::submit(Submission submission, bool here) {
  Lock lock(mutex_);
  if (stopping_) return;
  for (auto& [lane, item] : submission) item->operation.ticket->expect();
  if (queue_.holds()) {
    for (auto& [lane, item] : submission) queue_.hold({lane, std::move(item), nullptr, nullptr});
    return;  // whoever runs the fence goes on with these
  }
  const bool idle = unfinished_ == 0;
  for (auto& [lane, item] : submission) enqueue(*lane, std::move(item));
  if (here && idle && queuedBytes_ <= kHereBytes) workNarrow(lock);
  if (!claimable()) return;
  startThread();
  lock.unlock();
  wake_.notify_one();
}

void Scheduler::apply(std::function<void()> body) {
  const Lock lock(mutex_);
  if (stopping_) return;
  queue_.add({nullptr, nullptr, std::move(body), nullptr},
             [this](Entry&& entry) { carryOut(std::move(entry)); });
}

void Scheduler::fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) {
  Lock lock(mutex_);
  if (stopping_) return;
  ticket->expect();
  queue_.hold({nullptr, nullptr, std::move(body), std::move(ticket)});
  if (!fenceReady()) return;
  startThread();
  lock.unlock();
  wake_.notify_one();
}

void Scheduler::resume(Work& work, std::exception_ptr error) {
  Lock lock(mutex_);
  if (stopping_) return;
  work.error_ = std::move(error);
  if (!work.waiting_) {
    work.resumed_ = true;  // advance() is about to find it
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
  return !ready_.empty() || !active_.empty() || !resumed_.empty() || fenceReady();
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

/// Takes and does the most urgent thing there is; false when there is nothing.
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
  Lane* const lane = ready_.empty() ? nullptr : *ready_.begin();
  if (active && (!lane || !lane->urgency_.soonerThan(active->urgency_))) {
    runPart(*active, lock);
    return true;
  }
  if (lane) {
    startLane(*lane, lock);
    return true;
  }
  if (fenceReady()) {
    runFence(lock);
    return true;
  }
  return false;
}

void Scheduler::startLane(Lane& lane, Lock& lock) {
  ready_.erase(&lane);
  lane.work_ = lane.plan();
  Work& work = *lane.work_;
  work.lane_ = &lane;
  work.urgency_ = lane.urgency_;
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

/// Begins the next phase; phases of one part are run on the spot.
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
  Entry& fence = queue_.beginFence();
  std::exception_ptr error;
  lock.unlock();
  try {
    if (fence.body) fence.body();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  fence.ticket->finish(std::move(error));
  queue_.endFence([this](Entry&& entry) { carryOut(std::move(entry)); });
}

void Scheduler::finish(Work& work) {
  Lane& lane = *work.lane_;
  const std::unique_ptr<Work> ended = std::move(lane.work_);
  unfinished_ -= work.items.size();
  makeReady(lane);
  for (const KeyItemPtr& item : work.items) item->operation.ticket->finish(work.error_);
}

void Scheduler::carryOut(Entry&& entry) {
  if (entry.lane) {
    enqueue(*entry.lane, std::move(entry.item));
  } else {
    entry.body();
  }
}

}  // namespace gradlink
