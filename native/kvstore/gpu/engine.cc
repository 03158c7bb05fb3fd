#include "kvstore/gpu/engine.h"

#include <algorithm>
#include <limits>

#include "cuda/stream.h"

namespace gradlink {
namespace {

// What is under way at most, in rounds of full size: while one runs, the next are queued behind it.
constexpr std::size_t kRoundsInFlight = 8;
// After the last round the next is often submitted within this; being woken takes as long.
constexpr auto kLingering = std::chrono::microseconds(30);

std::int32_t priorityOf(const GpuKey& key) {
  // The most urgent item of a key pulls along those that it has to wait for.
  std::int32_t priority = std::numeric_limits<std::int32_t>::min();
  for (const GpuItem& item : key.queue) priority = std::max(priority, item.operation.priority);
  return priority;
}

}  // namespace

void GpuEngine::startThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
}

void GpuEngine::notify(Lock& lock) {
  const bool asleep = asleep_;
  lock.unlock();
  if (asleep) wake_.notify_one();
}

void GpuEngine::submit(std::vector<GpuItem> items) {
  Lock lock(mutex_);
  if (stopping_) return;
  for (GpuItem& item : items) {
    item.operation.ticket->expect();
    incoming_.push_back({std::move(item), nullptr, nullptr});
  }
  startThread();
  notify(lock);
}

void GpuEngine::enqueue(Entry entry) {
  Lock lock(mutex_);
  if (stopping_) return;
  if (entry.ticket) entry.ticket->expect();
  incoming_.push_back(std::move(entry));
  startThread();
  notify(lock);
}

void GpuEngine::apply(std::function<void()> body) { enqueue({{}, std::move(body), nullptr}); }

void GpuEngine::fence(std::function<void()> body, std::shared_ptr<Ticket> ticket) {
  enqueue({{}, std::move(body), std::move(ticket)});
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
    progress = watchFlights() || progress;
    lock.lock();
    for (Ended& one : ended_) one.ticket->finish(std::move(one.error));
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
  flights_.clear();
}

/// Waits a while: until something is submitted, or it is time to look at the devices again.
void GpuEngine::rest(Lock& lock, Clock::time_point since) {
  const Clock::duration waited = Clock::now() - since;
  const std::chrono::nanoseconds pause = cuda::pauseAfter(waited);
  if (onDevice_ ? pause.count() == 0 : waited < kLingering) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return;
  }
  asleep_ = true;
  const auto something = [this] { return stopping_ || woken_ || !incoming_.empty(); };
  if (onDevice_) {
    wake_.wait_for(lock, pause, something);
  } else {
    wake_.wait(lock, something);
  }
  asleep_ = false;
}

/// Entries become items of their keys, up to a fence that has to wait.
bool GpuEngine::admitEntries() {
  bool any = !taken_.empty();
  for (Entry& entry : taken_) {
    queue_.add(std::move(entry), [this](Entry&& one) { carryOut(std::move(one)); });
  }
  taken_.clear();
  // A blocked key has a flight, and one with something to do is listed or blocked.
  while (queue_.fenceWaits() && flights_.empty() && listed_.empty()) {
    runFence();
    any = true;
  }
  return any;
}

void GpuEngine::carryOut(Entry&& entry) {
  if (entry.body) return entry.body();
  GpuItem& item = entry.item;
  GpuKey& key = *item.key;
  if (broken_) {
    item.error = broken_;
  } else {
    admit_(item);
  }
  if (key.queue.empty()) key.sequence = ++sequence_;
  key.queue.push_back(std::move(item));
  list(key);
}

void GpuEngine::runFence() {
  Entry& fence = queue_.beginFence();
  std::exception_ptr error = broken_;
  if (!error && fence.body) {
    try {
      fence.body();
    } catch (...) {
      error = std::current_exception();
    }
  }
  ended_.push_back({std::move(fence.ticket), std::move(error)});
  queue_.endFence([this](Entry&& one) { carryOut(std::move(one)); });
}

void GpuEngine::list(GpuKey& key) {
  if (key.listed || key.blocked || key.queue.empty()) return;
  key.listed = true;
  listed_.push_back(&key);
}

bool GpuEngine::beginRounds() {
  bool any = false;
  while (!listed_.empty() &&
         (flights_.empty() || bytesInFlight_ < kRoundsInFlight * site_.roundBytes())) {
    any = true;
    std::vector<std::unique_ptr<GpuUnit>> round = makeRound();
    if (round.empty()) continue;
    const std::size_t before = flights_.size();
    std::exception_ptr error;
    try {
      site_.begin(round, flights_);
    } catch (...) {
      error = std::current_exception();
    }
    for (std::size_t i = before; i < flights_.size(); ++i) {
      for (const auto& unit : flights_[i]->units) bytesInFlight_ += unit->bytes();
    }
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
  std::vector<std::pair<std::int32_t, GpuKey*>> order;
  order.reserve(listed_.size());
  for (GpuKey* key : listed_) order.emplace_back(priorityOf(*key), key);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->sequence < b.second->sequence;
  });
  listed_.clear();
  std::vector<std::unique_ptr<GpuUnit>> round;
  std::size_t bytes = 0;
  for (const auto& [priority, key] : order) {
    key->listed = false;
    if (bytes < site_.roundBytes()) {
      std::unique_ptr<GpuUnit> unit = takeUnit(*key);
      const std::exception_ptr error = broken_ ? broken_ : unit->head().error;
      if (error) {
        std::vector<std::unique_ptr<GpuUnit>> failed;
        failed.push_back(std::move(unit));
        end(failed, error);
      } else {
        bytes += unit->bytes();
        key->blocked = unit->blocks = site_.blocksKey(*unit);
        round.push_back(std::move(unit));
      }
    }
    list(*key);
  }
  return round;
}

std::unique_ptr<GpuUnit> GpuEngine::takeUnit(GpuKey& key) {
  auto unit = std::make_unique<GpuUnit>(key);
  const auto take = [&] {
    GpuItem& item = key.queue.front();
    unit->in.insert(unit->in.end(), item.in.begin(), item.in.end());
    unit->out.insert(unit->out.end(), item.out.begin(), item.out.end());
    unit->items.push_back(std::move(item));
    key.queue.pop_front();
  };
  take();
  // Pulls that wait behind a push (or a pull) ride along. Not behind an external updater, whose
  // failure is the push's alone.
  const bool joins = unit->kind() == OperationKind::pull || site_.joinsPulls();
  const bool carries = joins && unit->kind() != OperationKind::rowSparsePull && !unit->ofRows() &&
                       !unit->head().external && !unit->head().error;
  while (carries && !key.queue.empty() && key.queue.front().operation.kind == OperationKind::pull &&
         !key.queue.front().error) {
    take();
  }
  key.sequence = ++sequence_;
  return unit;
}

/// After a failure: nothing may use the memory of those who are told of it. A device that does not
/// end is of no use any more.
void GpuEngine::calmDown(const std::exception_ptr& error) {
  if (lost_ || site_.quiesce()) return;
  lost_ = true;
  broken_ = error;
}

bool GpuEngine::watchFlights() {
  bool any = false;
  onDevice_ = false;
  for (std::size_t i = 0; i < flights_.size();) {
    GpuFlight& flight = *flights_[i];
    std::exception_ptr error;
    auto progress = GpuFlight::Progress::done;
    try {
      progress = flight.advance();
    } catch (...) {
      error = std::current_exception();
      calmDown(error);
    }
    if (progress != GpuFlight::Progress::done) {
      onDevice_ = onDevice_ || progress == GpuFlight::Progress::onDevice;
      ++i;
      continue;
    }
    any = true;
    for (const auto& unit : flight.units) bytesInFlight_ -= unit->bytes();
    end(flight.units, error);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return any;
}

void GpuEngine::end(std::vector<std::unique_ptr<GpuUnit>>& units, const std::exception_ptr& error) {
  for (const auto& unit : units) {
    if (!unit) continue;
    for (GpuItem& item : unit->items) ended_.push_back({std::move(item.operation.ticket), error});
    // Not those that were begun before the one that blocks it.
    if (unit->blocks) unit->key.blocked = false;
    list(unit->key);
  }
  units.clear();
}

}  // namespace gradlink
