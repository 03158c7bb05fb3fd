#include "kvstore/allreduce/allreduce_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kvstore/store_checks.h"

namespace gradlink {
namespace {

/// Keys are numbered in the order of definition: another order gives a number another name.
std::uint64_t fingerprint(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

bool needsAll(OperationKind kind) { return kind == OperationKind::init || isPush(kind); }

}  // namespace

AllreduceEngine::AllreduceEngine(std::unique_ptr<Communicator> comm, LocalStore& values,
                                 AllreduceShards* shards, const AllreduceStoreOptions& options)
    : comm_(std::move(comm)),
      rank_(comm_->heldRanks().front()),
      values_(values),
      shards_(shards),
      options_(options),
      agreement_(*comm_),
      thread_([this] { serve(); }) {}

AllreduceEngine::~AllreduceEngine() {
  stop();
  close();
}

void AllreduceEngine::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    if (calling_) comm_->leave();
  }
  wake_.notify_all();
  { const std::lock_guard tickets(tickets_); }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AllreduceEngine::close() {
  if (buffer_ != nullptr) comm_->freeShared(buffer_);
  buffer_ = nullptr;
  comm_->close();
}

void AllreduceEngine::define(Key key) {
  const Lock lock(mutex_);
  keys_.emplace_back(std::move(key));
}

WorkerReport AllreduceEngine::report() const {
  const Lock lock(mutex_);
  return spent_;
}

// ---- from the submitter's thread

void AllreduceEngine::submit(std::vector<Operation> operations, bool here) {
  {
    const std::lock_guard tickets(tickets_);
    for (const Operation& operation : operations) operation.ticket->expect();
  }
  {
    const Lock lock(mutex_);
    for (Operation& operation : operations) {
      queue_.add({std::move(operation)}, [&](Operation&& one) { enqueue(std::move(one), here); });
    }
  }
  wake_.notify_all();
}

void AllreduceEngine::fence(AllreduceFence fence) {
  if (fence.ticket) {
    const std::lock_guard tickets(tickets_);
    fence.ticket->expect();
  }
  {
    const Lock lock(mutex_);
    if (failure_) return finish(fence.ticket, failure_);
    queue_.hold(queue_.fenceOf(std::move(fence)));
  }
  wake_.notify_all();
}

/// Under the lock.
void AllreduceEngine::enqueue(Operation operation, bool here) {
  if (failure_) return finish(operation.ticket, failure_);
  SummedKey& key = keys_[operation.key];
  if (!needsAll(operation.kind)) {
    if (key.queue.empty()) return forward(std::move(operation), here);
    key.queue.push_back({std::move(operation)});
    return;
  }
  if (left_) {
    return finish(operation.ticket,
                  std::make_exception_ptr(storeMisuse(
                      "key " + key.name + ": this worker has left the sums, it can only pull")));
  }
  const bool steps = shards_ != nullptr && shards_->optimizer() && isPush(operation.kind);
  if (steps && !isFloat(key.dtype)) {
    return finish(operation.ticket, needsFloats(key.name, key.dtype));
  }
  if (steps && !operation.inRows.empty()) {
    return finish(operation.ticket,
                  std::make_exception_ptr(storeUnsupported(
                      "key " + key.name +
                      ": a push of rows cannot be combined with shardOptimizer, where "
                      "each worker steps a part of every key; omit one of them")));
  }
  Unannounced unannounced{
      {.key = operation.key,
       .priority = operation.priority,
       .count = key.count,
       .rowLength = key.rowLength,
       .name = fingerprint(key.name),
       .rows = isPush(operation.kind) && isHalf(key.dtype) && operation.in.size() > 1 ? kWiderArray
                                                                                      : kWholeArray,
       .kind = steps                                   ? SumKind::step
               : operation.kind == OperationKind::init ? SumKind::init
                                                       : SumKind::push,
       .dtype = key.dtype,
       .changes = steps ? changes_ : std::uint16_t{0},
       .rule = isPush(operation.kind) ? rule_ : 0}};
  key.queue.push_back({std::move(operation)});
  if (key.queue.back().ofRows()) unannounced.ofRows = &key.queue.back();
  toAnnounce_.push_back(unannounced);
  ++unsummed_;
}

/// Passes it to this worker's own store. Under the lock.
void AllreduceEngine::forward(Operation operation, bool here) {
  operation.ticket = relay(std::move(operation.ticket));
  std::vector<Operation> one;
  one.push_back(std::move(operation));
  values_.submit(std::move(one), here);
}

/// A ticket for this worker's own store that ends the given one.
std::shared_ptr<Ticket> AllreduceEngine::relay(std::shared_ptr<Ticket> ticket) {
  return std::make_shared<Ticket>([this, ticket = std::move(ticket)](
                                      const std::exception_ptr& error) { finish(ticket, error); });
}

void AllreduceEngine::finish(const std::shared_ptr<Ticket>& ticket,
                             const std::exception_ptr& error) {
  if (!ticket) return;
  const std::lock_guard tickets(tickets_);
  ticket->finish(error);
}

// ---- the thread

bool AllreduceEngine::fenceReady() const { return queue_.fenceWaits() && unsummed_ == 0; }

bool AllreduceEngine::idle() const {
  const bool mustExchange =
      !toAnnounce_.empty() || agreement_.hasPending() || (left_ && !agreement_.everybodyLeft());
  return !mustExchange && !fenceReady();
}

void AllreduceEngine::serve() {
  Lock lock(mutex_);
  try {
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !idle(); });
      if (stopping_) return;
      step(lock);
    }
  } catch (const Error& error) {
    if (!lock.owns_lock()) lock.lock();
    if (!stopping_) fail(error);
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    if (!stopping_) fail(Error(ErrorCode::system, error.what()));
  }
}

void AllreduceEngine::step(Lock& lock) {
  if (fenceReady()) return runFence(lock);
  const bool unannounced = announceNew(lock);
  const auto begin = Deadline::Clock::now();
  const bool patient = left_;
  // A barrier or the end waits for the others, whatever they do.
  const bool sums = unsummed_ > 0;
  call(lock, [&] {
    agreement_.exchange(patient ? std::numeric_limits<double>::infinity() : options_.timeoutMs);
  });
  if (sums) {
    spent_.wait += std::chrono::duration<double>(Deadline::Clock::now() - begin).count();
  }
  bool found = false;
  for (auto ready = agreement_.takeReady(); !ready.empty(); ready = agreement_.takeReady()) {
    found = true;
    sum(std::move(ready), lock);
  }
  if (fenceMeets_ && left_ && agreement_.everybodyLeft()) endFence();
  if (found || unannounced) {
    pause_ = kShortestPause;
  } else if (!stopping_) {
    pauseFor(lock);
  }
}

/// Announces new operations; returns whether there were any. Enters and leaves with the lock.
bool AllreduceEngine::announceNew(Lock& lock) {
  std::vector<Unannounced> unannounced = std::exchange(toAnnounce_, {});
  for (Unannounced& one : unannounced) {
    if (one.ofRows != nullptr) {
      const auto begin = Deadline::Clock::now();
      lock.unlock();
      endForAll([&] { countRows(one); });
      lock.lock();
      spent_.copy += secondsSince(begin);
    }
    agreement_.announce(one.announced);
  }
  return !unannounced.empty();
}

/// Makes a call of the communicator, which stop() can end.
void AllreduceEngine::call(Lock& lock, const std::function<void()>& body) {
  if (stopping_) throw Error(ErrorCode::closed, "the store is closed");
  calling_ = true;
  lock.unlock();
  try {
    body();
  } catch (...) {
    lock.lock();
    calling_ = false;
    throw;
  }
  lock.lock();
  calling_ = false;
}

/// Nothing was ready: the others wait for other keys.
void AllreduceEngine::pauseFor(Lock& lock) {
  endForAll([this] {
    std::vector<std::string> names;
    for (const Key& key : keys_) names.push_back(key.name);
    agreement_.checkTimeout(options_.timeoutMs, names);
  });
  wake_.wait_for(lock, pause_, [this] { return stopping_ || !toAnnounce_.empty(); });
  pause_ = std::min(2 * pause_, kLongestPause);
}

/// Runs something that only this worker may fail, and ends the others' calls on failure.
void AllreduceEngine::endForAll(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    // When stopping, the others learn of it by the leaving.
    if (!stopping_) comm_->abort("worker " + std::to_string(rank_) + ": " + error.what());
    throw;
  }
}

// ---- fences

void AllreduceEngine::runFence(Lock& lock) {
  const AllreduceFence& fence = queue_.beginFence();
  lock.unlock();
  std::exception_ptr error = outcomeOf(fence.body);
  lock.lock();
  fenceError_ = std::move(error);
  if (!fence.meets) return endFence();
  fenceMeets_ = true;
  // Nobody waits for a worker that has left: its fence is met when all have left.
  if (!left_) {
    toAnnounce_.push_back(
        {{.key = kBarrierKey, .kind = fence.gathers ? SumKind::states : SumKind::barrier}});
  } else if (agreement_.everybodyLeft()) {
    endFence();
  }
}

void AllreduceEngine::endFence() {
  const AllreduceFence& fence = queue_.fence();
  fenceMeets_ = false;
  if (fence.leaves) {
    left_ = true;
    agreement_.leave();
  }
  finish(fence.ticket, std::exchange(fenceError_, nullptr));
  queue_.endFence([this](Operation&& one) { enqueue(std::move(one), false); });
}

void AllreduceEngine::waitFor(const std::function<void(std::shared_ptr<Ticket>)>& begin) {
  struct Outcome {
    bool ended = false;
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();
  begin(std::make_shared<Ticket>([this, outcome](const std::exception_ptr& error) {
    {
      const std::lock_guard tickets(tickets_);
      outcome->ended = true;
      outcome->error = error;
    }
    ended_.notify_all();
  }));
  std::unique_lock tickets(tickets_);
  ended_.wait(tickets, [&] { return outcome->ended || stopping_; });
  if (!outcome->ended) throw Error(ErrorCode::closed, "the store is closed");
  if (outcome->error) std::rethrow_exception(outcome->error);
}

void AllreduceEngine::changeRule(const std::string& what, bool further) {
  const Lock lock(mutex_);
  ++changes_;
  rule_ = fingerprint(further ? std::to_string(setRule_) + what : what);
  if (!further) setRule_ = rule_;
}

// ---- the end

/// Fails everything pending and later. Under the lock.
void AllreduceEngine::fail(const Error& error) {
  Error reported(error.code, std::string("the workers no longer sum together: ") + error.what());
  reported.withRank(error.rank);
  failure_ = std::make_exception_ptr(reported);
  for (SummedKey& key : keys_) {
    for (const Waiting& waiting : key.queue) finish(waiting.operation.ticket, failure_);
    key.queue.clear();
  }
  for (const auto& entry : queue_.takeAll()) {
    // A worker that has left waits only for the others to end, however they do.
    const bool ends = entry.fence && left_;
    finish(entry.fence ? entry.fence->ticket : entry.request.ticket, ends ? nullptr : failure_);
  }
  toAnnounce_.clear();
  unsummed_ = 0;
}

}  // namespace gradlink
