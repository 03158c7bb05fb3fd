#include "kvstore/worker/engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "core/memory/cache.h"

namespace gradlink::dist {
namespace {

using Clock = Deadline::Clock;
// The most that a submitting thread sends itself: beyond, what it copies costs more than a wake-up
// (256 KiB alone take 48 us where the store's thread took 68; 2 cores of an EPYC Zen 5, November
// 2026).
constexpr std::size_t kHereBytes = 256 << 10;
// Where more is out, the thread has buffers to take back.
constexpr std::size_t kMostOutHere = 512 << 10;
// How long a store that has failed waits for its last messages to be taken.
constexpr double kFailedCloseMs = 200;

Header serverHeader(const WireMessage& message) {
  Header header;
  if (message.header.size() != sizeof header) {
    throw Error(ErrorCode::mismatch, "a server sent a message of another version");
  }
  std::memcpy(&header, message.header.data(), sizeof header);
  return header;
}

std::span<const std::uint8_t> payloadOf(const WireMessage& message) {
  return {static_cast<const std::uint8_t*>(message.payload), message.bytes};
}

Error errorOf(const Header& header, const WireMessage& message) {
  const auto text = payloadOf(message);
  Error error(static_cast<ErrorCode>(header.code), std::string(text.begin(), text.end()));
  error.withRank(header.blame);
  if (header.request != 0) error.stillUsable();
  return error;
}

}  // namespace

DistEngine::DistEngine(std::unique_ptr<Wire> wire, const DistStoreOptions& options)
    : options_(options),
      link_(std::move(wire), options.workers, options.servers),
      transfers_(link_, options.mostStagedBytes, finished_),
      lastLook_(Clock::now()),
      lastProgress_(lastLook_),
      presence_(options.servers, options.timeoutMs),
      thread_([this] { serve(); }) {}

// ---- from other threads

void DistEngine::enqueue(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (task.request && task.request->ticket) task.request->ticket->expect();
    tasks_.push_back(std::move(task));
    hasTasks_.store(true);
  }
  if (asleep_.load()) wakeThread();
}

void DistEngine::setCompression(const CompressionTerms& terms) {
  Task task;
  task.terms = std::make_unique<CompressionTerms>(terms);
  enqueue(std::move(task));
}

void DistEngine::define(DistKey& key) {
  Task task;
  task.defined = &key;
  enqueue(std::move(task));
}

void DistEngine::request(DistRequest request) {
  Task task;
  task.request = std::make_unique<DistRequest>(std::move(request));
  enqueue(std::move(task));
}

void DistEngine::submit(std::vector<std::pair<DistKey*, Operation>> operations, bool here) {
  std::size_t bytes = 0;
  for (const auto& [key, operation] : operations) {
    bytes += key->bytes() * std::max<std::size_t>(1, operation.in.size());
  }
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || operations.empty()) return;
    for (auto& [key, operation] : operations) {
      operation.ticket->expect();
      Task task;
      task.key = key;
      task.operation = std::move(operation);
      tasks_.push_back(std::move(task));
    }
    hasTasks_.store(true);
  }
  const bool small = bytes <= kHereBytes;
  small_.store(small, std::memory_order_relaxed);
  if (!asleep_.load()) return;
  // A thread that still spins is told for nothing, and spins on for the answer.
  if (here && small && (rests() || link_.pollSleeps()) && sendHere()) return;
  wakeThread();
}

/// The thread's part up to its sleep, on this thread; false where that one is wanted even so.
bool DistEngine::sendHere() {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock || !asleep_.load() || stopping_.load()) return false;
  if (link_.buffers().stagedBytes() > kMostOutHere) return false;
  guarded([&] {
    takeTasks();
    transfers_.sendSome();
  });
  lookedFrom_ = Clock::now();
  // Requests carry out more than is good for this thread, and the others need another sleep.
  return !queue_.fenceWaits() && !transfers_.canSend() && !transfers_.awaitsReceipts();
}

void DistEngine::stop(bool inGoodOrder) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    tasks_.clear();
  }
  stopping_.store(true);
  if (!inGoodOrder) over_.store(true);
  if (!thread_.joinable()) return;
  wakeThread();
  thread_.join();
  if (inGoodOrder) link_.close(Deadline::in(error_ ? kFailedCloseMs : options_.timeoutMs));
}

DistTimes DistEngine::times() const {
  return {copySeconds_.load(std::memory_order_relaxed),
          waitSeconds_.load(std::memory_order_relaxed)};
}

// ---- the thread

void DistEngine::serve() {
  std::unique_lock lock(turn_);
  while (!stopping_.load(std::memory_order_relaxed)) {
    guarded([&] { turn(lock); });
  }
}

/// What goes wrong in a turn ends the store; what it has finished is told.
void DistEngine::guarded(const std::function<void()>& turn) {
  try {
    turn();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::outOfMemory, "a distributed store ran out of memory"));
  }
  tellFinished();
}

void DistEngine::turn(std::unique_lock<std::mutex>& lock) {
  takeTasks();
  goOn();
  transfers_.sendSome();
  // Requests wait for operations that may just have ended.
  goOn();
  tellFinished();
  if (mayRest()) {
    rest(lock);
  } else {
    wait(lock);
  }
  handleEvents();
  if (const auto now = Clock::now(); now - lastLook_ > kLookEvery) {
    lastLook_ = now;
    lookAtTime();
  }
}

void DistEngine::handleEvents() {
  for (const WireMessage& message : events_.messages) {
    try {
      handle(message);
    } catch (const Error& error) {
      fail(error);
    }
  }
  transfers_.settle();
  for (const std::uint64_t ticket : events_.sent) {
    transfers_.released(WireBuffers::ofTicket(ticket));
  }
  for (const int rank : events_.lost) lost(rank, true);
  for (const int rank : events_.left) lost(rank, false);
  if (!events_.sent.empty() || !events_.lost.empty() || !events_.left.empty()) {
    lastProgress_ = Clock::now();
  }
  events_.clear();
  copySeconds_.store(transfers_.copySeconds(), std::memory_order_relaxed);
}

void DistEngine::takeTasks() {
  if (!hasTasks_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(tasks_);
    hasTasks_.store(false);
  }
  if (!isWaiting()) lastProgress_ = Clock::now();
  for (Task& task : taken_) {
    // Keys are made known at once: nothing depends on when, and their order stays.
    if (task.terms) {
      sendTerms(*task.terms);
    } else if (task.defined) {
      defineKey(*task.defined);
    } else {
      queue_.add(std::move(task), [this](Task&& one) { carryOut(std::move(one)); });
    }
  }
  taken_.clear();
}

void DistEngine::carryOut(Task&& task) {
  if (error_) {
    finished_.emplace_back(std::move(task.operation.ticket), error_);
  } else {
    transfers_.add(*task.key, std::move(task.operation));
  }
}

void DistEngine::sendTerms(const CompressionTerms& terms) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&terms);
  for (int server = 0; server < link_.servers(); ++server) {
    link_.send(server, Header{.type = MessageType::setCompression}, std::span(bytes, sizeof terms));
  }
}

void DistEngine::defineKey(DistKey& key) {
  transfers_.define(key);
  keyBytes_ += key.bytes();
  // Read or written once each, by the devices, the wire and the results.
  transfers_.setStreaming(keyBytes_ * (2 * options_.devices + 1) > lastLevelCacheBytes());
  for (const Shard& shard : key.shards) {
    Header header{.type = MessageType::define,
                  .dtype = key.dtype,
                  .flags = shard.first > 0 ? kContinued : std::uint8_t{0},
                  .shard = shard.number,
                  .count = shard.count,
                  .round = shard.first,
                  .request = key.rowLength};
    link_.send(shard.server, header,
               std::span(reinterpret_cast<const std::uint8_t*>(key.name.data()), key.name.size()));
  }
  keys_.push_back(&key);
}

// ---- requests

void DistEngine::goOn() {
  while (queue_.fenceWaits() && transfers_.unfinished() == 0) {
    begin(std::move(queue_.beginFence().request));
  }
}

void DistEngine::begin(std::unique_ptr<DistRequest> request) {
  asked_ = std::make_unique<Asked>();
  asked_->request = std::move(request);
  asked_->error = error_;
  asked_->begun = Clock::now();
  std::vector<DistRequest::Question> questions;
  try {
    if (!error_ && asked_->request->ask) questions = asked_->request->ask(*asked_->request);
    if (asked_->request->failure) asked_->error = asked_->request->failure;
  } catch (...) {
    asked_->error = std::current_exception();
  }
  if (questions.empty()) return end();
  asked_->number = ++lastRequest_ | kRequestBit;
  asked_->left = questions.size();
  asked_->answered.resize(questions.size());
  for (std::size_t server = 0; server < questions.size(); ++server) {
    Header header{.type = questions[server].type, .flags = questions[server].flags};
    header.request = asked_->number;
    link_.send(static_cast<int>(server), header, questions[server].payload);
  }
}

void DistEngine::answered(const Header& header, const WireMessage& message) {
  if (!asked_ || header.request != asked_->number) return;
  const auto server = static_cast<std::size_t>(link_.serverOf(message.source));
  if (asked_->answered[server]) return;
  asked_->answered[server] = true;
  try {
    if (header.type == MessageType::failed) throw errorOf(header, message);
    if (asked_->request->answer) asked_->request->answer(server, payloadOf(message));
  } catch (...) {
    if (!asked_->error) asked_->error = std::current_exception();
  }
  if (--asked_->left == 0) end();
}

void DistEngine::end() {
  const std::unique_ptr<Asked> asked = std::move(asked_);
  if (asked->request->tellsFailures) {
    for (DistKey* const key : keys_) {
      if (!asked->error) std::swap(asked->error, key->error);
    }
  }
  try {
    if (!asked->error && asked->request->finish) asked->request->finish();
  } catch (...) {
    asked->error = std::current_exception();
  }
  if (asked->request->ticket) {
    finished_.emplace_back(asked->request->ticket, asked->error);
  } else if (asked->error && !error_) {
    fail(asked->error);
  }
  queue_.endFence([this](Task&& task) { carryOut(std::move(task)); });
}

// ---- the wire

void DistEngine::handle(const WireMessage& message) {
  const Header header = serverHeader(message);
  const auto now = Clock::now();
  if (const int server = link_.serverOf(message.source); server >= 0) presence_.heard(server, now);
  if (header.request != kPresenceRequest) lastProgress_ = now;
  // The transfers keep it until it has been copied.
  if (header.type == MessageType::value) return transfers_.value(header, message);
  if (header.type == MessageType::failed && header.request == 0) {
    fail(errorOf(header, message));
  } else if ((header.request & kRequestBit) != 0) {
    answered(header, message);
  } else if (header.type == MessageType::failed) {
    transfers_.failed(header, std::make_exception_ptr(errorOf(header, message)));
  }
  link_.release(message);
}

void DistEngine::tellFinished() {
  // Without the lock of those who submit, whom this wakes: operations are counted before this side
  // sees them, so their tickets are the engine's alone.
  for (auto& [ticket, error] : finished_) ticket->finish(error);
  finished_.clear();
}

}  // namespace gradlink::dist
