#include "kvstore/gpu/gpu_engine.h"

#include <algorithm>
#include <limits>
#include <span>

#include "cuda/stream.h"

namespace gradlink {
namespace {

// What is on the devices at most, in rounds of full size: while one runs, the next are queued
// behind it.
constexpr std::size_t kRoundsInFlight = 8;
// Where the first rounds are small: how they grow, and how many first ones are under way.
constexpr std::size_t kGrowth = 4;
constexpr std::size_t kFirstRoundsInFlight = 4;
// After the last round the next is often submitted within this; being woken takes as long.
constexpr auto kLingering = std::chrono::microseconds(30);
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

void GpuEngine::startThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
}

void GpuEngine::notify(Lock& lock) {
  const bool asleep = asleep_;
  lock.unlock();
  if (asleep) wake_.notify_one();
}

void GpuEngine::submit(std::vector<GpuRequest> requests) {
  Lock lock(mutex_);
  if (stopping_) return;
  for (GpuRequest& request : requests) {
    request.ticket->expect(request.to - request.from);
    incoming_.push_back({std::move(request), nullptr, nullptr});
  }
  startThread();
  notify(lock);
}

void GpuEngine::enqueue(Entry entry) {
  Lock lock(mutex_);
  if (stopping_) return;
  if (entry.fence) entry.fence->ticket->expect();
  incoming_.push_back(std::move(entry));
  startThread();
  notify(lock);
}

void GpuEngine::apply(std::function<void()> body) { enqueue(queue_.settingOf(std::move(body))); }

void GpuEngine::fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) {
  enqueue(queue_.fenceOf({std::move(body), std::move(ticket)}));
}

void GpuEngine::wake() {
  Lock lock(mutex_);
  woken_ = true;
  notify(lock);
}

void GpuEngine::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    notify(lock);
  }
  site_.cancel();
  if (thread_.joinable()) thread_.join();
}

void GpuEngine::serve() {
  cuda::wakePrecisely();
  try {
    site_.open();
  } catch (...) {
    broken_ = std::current_exception();
  }
  Clock::time_point lastProgress = Clock::now();
  Lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    taken_.swap(incoming_);
    lock.unlock();
    bool progress = admitEntries();
    progress = beginRounds() || progress;
    progress = watchInFlight() || progress;
    lock.lock();
    for (Ended& one : ended_) one.ticket->finish(std::move(one.error), one.operations);
    ended_.clear();
    if (progress) {
      lastProgress = Clock::now();
    } else if (incoming_.empty() && !woken_ && !stopping_) {
      rest(lock, lastProgress);
    }
  }
  lock.unlock();
  // Memory that a device still uses may not go.
  if (!lost_) lost_ = !site_.quiesce();
  inFlight_.clear();
}

/// Waits a while: until something is submitted, or it is time to look at the devices again.
void GpuEngine::rest(Lock& lock, Clock::time_point since) {
  const Clock::duration waited = Clock::now() - since;
  const std::chrono::nanoseconds pause = cuda::pauseAfter(waited);
  if (onDevice_ != 0 ? pause.count() == 0 : waited < kLingering) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return;
  }
  asleep_ = true;
  const auto something = [this] { return stopping_ || woken_ || !incoming_.empty(); };
  if (onDevice_ != 0) {
    wake_.wait_for(lock, pause, something);
  } else {
    wake_.wait(lock, something);
  }
  asleep_ = false;
}

/// Entries become items of their keys, up to a fence that has to wait; where rounds begin small,
/// about as many as the next one takes.
bool GpuEngine::admitEntries() {
  for (Entry& entry : taken_) backlog_.push_back(std::move(entry));
  taken_.clear();
  bool any = !backlog_.empty();
  if (inFlight_.empty()) nextRoundBytes_ = site_.firstRoundBytes();
  std::size_t most = beginsSmall() ? nextRoundBytes_ : kAll;
  while (!backlog_.empty() && most > 0) {
    Entry& entry = backlog_.front();
    if (entry.request.operations && !queue_.holds()) {
      most -= std::min(most, admit(entry.request, most));
      if (entry.request.from < entry.request.to) break;
    } else {
      queue_.add(std::move(entry), [this](GpuRequest&& request) { admit(request, kAll); });
    }
    backlog_.pop_front();
  }
  while (queue_.fenceReady()) {
    runFence();
    any = true;
  }
  return any;
}

/// Some of its operations, in their order: those of so many bytes, roughly. What they come to.
std::size_t GpuEngine::admit(GpuRequest& request, std::size_t most) {
  std::size_t bytes = 0;
  while (request.from < request.to && bytes < most) {
    const GpuOperation& operation = (*request.operations)[request.from++];
    const GpuKey& key = *operation.key;
    const std::span each =
        key.cut ? std::span(operation.inParts) : std::span<const GpuOperation>(&operation, 1);
    request.ticket->expect(each.size() - 1);
    for (const GpuOperation& one : each) {
      GpuItem item;
      item.operation = {request.operations, &one};
      item.priority = request.priority;
      item.ticket = request.ticket;
      if (broken_) {
        item.error = broken_;
      } else {
        admit_(item);
      }
      queue_.join(*one.key, std::move(item));
    }
    bytes += key.bytes() * (operation.in.size() + operation.out.size() + 1);
  }
  return bytes;
}

void GpuEngine::runFence() {
  const Fence& fence = queue_.beginFence();
  tell(fence.ticket, broken_ ? broken_ : outcomeOf(fence.body));
  queue_.endFence([this](GpuRequest&& request) { admit(request, kAll); });
}

/// Of what the devices have to do there is a limit. What waits elsewhere has none: it may wait for
/// other workers, who wait for operations of this one that have not begun.
bool GpuEngine::mayBegin() const {
  if (onDevice_ == 0) return true;
  // One that runs and one behind it, unless they are over soon.
  if (beginsSmall())
    return onDevice_ < 2 || bytesOnDevice_ < kFirstRoundsInFlight * site_.firstRoundBytes();
  return bytesOnDevice_ < kRoundsInFlight * site_.roundBytes();
}

bool GpuEngine::beginRounds() {
  bool any = false;
  while (!queue_.empty() && mayBegin()) {
    any = true;
    std::vector<std::unique_ptr<GpuUnit>> round = makeRound();
    if (round.empty()) continue;
    nextRoundBytes_ = std::min(kGrowth * nextRoundBytes_, site_.roundBytes());
    const std::size_t before = inFlight_.size();
    std::exception_ptr error;
    try {
      site_.begin(round, inFlight_);
    } catch (...) {
      error = std::current_exception();
    }
    for (std::size_t i = before; i < inFlight_.size(); ++i) {
      for (const auto& unit : inFlight_[i]->units) inFlight_[i]->bytes += unit->bytes();
      bytesOnDevice_ += inFlight_[i]->bytes;
    }
    onDevice_ += inFlight_.size() - before;
    if (error) {
      // Some of it may have been queued.
      calmDown(error);
      end(round, error);
    }
  }
  return any;
}

/// One unit of each key that has something to do, most urgent first, up to the size of a round.
/// Units that failed before they began end here.
std::vector<std::unique_ptr<GpuUnit>> GpuEngine::makeRound() {
  begun_.clear();
  std::vector<std::unique_ptr<GpuUnit>> round;
  std::size_t bytes = 0;
  while (bytes < nextRoundBytes_) {
    GpuKey* const key = queue_.soonest();
    if (key == nullptr) break;
    queue_.unlist(*key);
    begun_.push_back(key);
    std::unique_ptr<GpuUnit> unit = takeUnit(*key);
    const std::exception_ptr error = broken_ ? broken_ : unit->head().error;
    if (error) {
      std::vector<std::unique_ptr<GpuUnit>> failed;
      failed.push_back(std::move(unit));
      end(failed, error);
    } else {
      bytes += unit->bytes();
      unit->blocks = site_.blocksKey(*unit);
      if (unit->blocks) queue_.block(*key);
      round.push_back(std::move(unit));
    }
  }
  for (GpuKey* const key : begun_) queue_.list(*key);
  return round;
}

std::unique_ptr<GpuUnit> GpuEngine::takeUnit(GpuKey& key) {
  std::unique_ptr<GpuUnit> unit;
  if (spare_.empty()) {
    unit = std::make_unique<GpuUnit>();
  } else {
    unit = std::move(spare_.back());
    spare_.pop_back();
  }
  unit->reset(key);
  const auto take = [&] {
    unit->items.push_back(key.queue.take());
    const GpuOperation& operation = *unit->items.back().operation;
    // Of those after the first, none brings any.
    if (unit->items.size() == 1) unit->in = operation.in;
    unit->out.insert(unit->out.end(), operation.out.begin(), operation.out.end());
  };
  take();
  const bool joins = unit->kind() == OperationKind::pull || site_.joinsPulls();
  const bool carries = joins && !unit->ofRows() && carriesPulls(unit->kind(), unit->head());
  while (carries && key.queue.pullIsNext() && !key.queue.front().error) take();
  return unit;
}

/// After a failure: no stream may still use memory whose owner has been notified. A device that
/// does not end is of no use any more.
void GpuEngine::calmDown(const std::exception_ptr& error) {
  if (lost_ || site_.quiesce()) return;
  lost_ = true;
  broken_ = error;
}

bool GpuEngine::watchInFlight() {
  bool any = false;
  const std::size_t before = onDevice_;
  onDevice_ = 0;
  bytesOnDevice_ = 0;
  for (std::size_t i = 0; i < inFlight_.size();) {
    InFlight& operation = *inFlight_[i];
    std::exception_ptr error;
    auto progress = InFlight::Progress::done;
    try {
      progress = operation.advance();
    } catch (...) {
      error = std::current_exception();
      calmDown(error);
    }
    if (progress != InFlight::Progress::done) {
      if (progress == InFlight::Progress::onDevice) {
        ++onDevice_;
        bytesOnDevice_ += operation.bytes;
      }
      ++i;
      continue;
    }
    any = true;
    end(operation.units, error);
    inFlight_.erase(inFlight_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // What has left the devices makes room too.
  return any || onDevice_ < before;
}

void GpuEngine::end(std::vector<std::unique_ptr<GpuUnit>>& units, const std::exception_ptr& error) {
  for (auto& unit : units) {
    if (!unit) continue;
    for (GpuItem& item : unit->items) tell(std::move(item.ticket), error);
    queue_.ended(unit->items.size());
    // Not those that were begun before the one that blocks it.
    if (unit->blocks) queue_.release(unit->key());
    // What the call brought goes now.
    unit->items.clear();
    spare_.push_back(std::move(unit));
  }
  units.clear();
}

/// Once the lock is held; a call's operations together.
void GpuEngine::tell(std::shared_ptr<Ticket> ticket, const std::exception_ptr& error) {
  if (!ended_.empty() && ended_.back().ticket == ticket && ended_.back().error == error) {
    ended_.back().operations += 1;
  } else {
    ended_.push_back({std::move(ticket), error, 1});
  }
}

}  // namespace gradlink
