#include "kvstore/worker/dist_engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "core/futex.h"

namespace gradlink::dist {
namespace {

using Clock = Deadline::Clock;
// The most that a submitting thread sends itself: copying more costs more than a wake-up (256 KiB
// take 48 us, the store's thread 68; 2 cores of an EPYC Zen 5, November 2026).
constexpr std::size_t kHereBytes = 256 << 10;
// With more in use, the thread has buffers to take back.
constexpr std::size_t kMostOutHere = 512 << 10;
// How long a failed store waits for its last messages to be taken.
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
      transfers_(link_, queue_, options.mostStagedBytes, finished_),
      lastLook_(Clock::now()),
      lastProgress_(lastLook_),
      presence_(options.servers, options.timeoutMs),
      thread_([this] { serve(); }) {}

// ---- from other threads

void DistEngine::enqueue(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (task.fence && task.fence->ticket) task.fence->ticket->expect();
    tasks_.push_back(std::move(task));
    hasTasks_.store(true);
  }
  if (asleep_.load()) wakeThread();
}

void DistEngine::setCompression(const CompressionTerms& terms) {
  enqueue(queue_.settingOf([this, terms] { sendTerms(terms); }));
}

void DistEngine::define(DistKey& key) {
  enqueue(queue_.settingOf([this, &key] { defineKey(key); }));
}

void DistEngine::request(DistRequest request) { enqueue(queue_.fenceOf(std::move(request))); }

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
      tasks_.push_back({{key, std::move(operation)}});
    }
    hasTasks_.store(true);
  }
  const bool small = bytes <= kHereBytes;
  small_.store(small, std::memory_order_relaxed);
  if (!asleep_.load()) return;
  // A spinning thread would be woken for nothing, and spins on for the answer.
  if (here && small && (rests() || link_.pollSleeps()) && sendHere()) return;
  wakeThread();
}

/// Does the engine thread's work up to its sleep on this thread; false if that one is needed.
bool DistEngine::sendHere() {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock || !asleep_.load() || stopping_.load()) return false;
  if (link_.buffers().stagedBytes() > kMostOutHere) return false;
  guarded([&] {
    takeTasks();
    transfers_.sendSome();
  });
  lookedFrom_ = Clock::now();
  // Requests are too much work for this thread, and the others need another kind of sleep.
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

WorkerReport DistEngine::report() const {
  return {.copy = copySeconds_.load(std::memory_order_relaxed),
          .wait = waitSeconds_.load(std::memory_order_relaxed),
          .bytesSent = link_.bytesSent(),
          .bytesReceived = link_.bytesReceived()};
}

// ---- the thread

void DistEngine::serve() {
  std::unique_lock lock(turn_);
  while (!stopping_.load(std::memory_order_relaxed)) {
    guarded([&] { turn(lock); });
  }
}

/// An error in a turn ends the store; what the turn has finished is still reported.
void DistEngine::guarded(const std::function<void()>& turn) {
  try {
    turn();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::outOfMemory, "a distributed store ran out of memory"));
  }
  finishTickets();
}

void DistEngine::turn(std::unique_lock<std::mutex>& lock) {
  takeTasks();
  goOn();
  transfers_.sendSome();
  // Operations that have just ended may unblock requests.
  goOn();
  finishTickets();
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
    // Keys are defined at once: only their order matters. If that fails, later tasks get the error.
    if (task.setting) {
      guarded(task.setting);
    } else {
      queue_.add(std::move(task), [this](KeyOperation&& one) { carryOut(std::move(one)); });
    }
  }
  taken_.clear();
}

void DistEngine::carryOut(KeyOperation&& one) {
  auto& [key, operation] = one;
  if (error_) {
    finished_.emplace_back(std::move(operation.ticket), error_);
  } else {
    queue_.join(*key, std::move(operation));
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
  // The devices' arrays, the wire and the results are accessed once each.
  transfers_.setTouched(keyBytes_ * (2 * options_.devices + 1));
  for (const Shard& shard : key.shards) {
    Header header{.type = MessageType::define,
                  .dtype = key.dtype,
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
  while (queue_.fenceReady()) begin(queue_.beginFence());
}

void DistEngine::begin(DistRequest& request) {
  current_ = std::make_unique<Asking>();
  current_->request = &request;
  current_->error = error_;
  current_->begun = Clock::now();
  std::vector<DistRequest::Question> questions;
  try {
    if (!error_ && current_->request->ask) questions = current_->request->ask(*current_->request);
    if (current_->request->failure) current_->error = current_->request->failure;
  } catch (...) {
    current_->error = std::current_exception();
  }
  if (questions.empty()) return end();
  current_->number = ++lastRequest_ | kRequestBit;
  current_->left = questions.size();
  current_->answered.resize(questions.size());
  for (std::size_t server = 0; server < questions.size(); ++server) {
    Header header{.type = questions[server].type, .flags = questions[server].flags};
    header.code = questions[server].code;
    header.request = current_->number;
    link_.send(static_cast<int>(server), header, questions[server].payload);
  }
}

void DistEngine::answered(const Header& header, const WireMessage& message) {
  if (!current_ || header.request != current_->number) return;
  const auto server = static_cast<std::size_t>(link_.serverOf(message.source));
  if (current_->answered[server]) return;
  current_->answered[server] = true;
  try {
    if (header.type == MessageType::failed) throw errorOf(header, message);
    if (current_->request->answer) current_->request->answer(server, payloadOf(message));
  } catch (...) {
    if (!current_->error) current_->error = std::current_exception();
  }
  if (--current_->left == 0) end();
}

void DistEngine::end() {
  const std::unique_ptr<Asking> ended = std::move(current_);
  if (ended->request->reportsFailures) {
    for (DistKey* const key : keys_) {
      if (!ended->error) std::swap(ended->error, key->error);
    }
  }
  try {
    if (!ended->error && ended->request->finish) ended->request->finish();
  } catch (...) {
    ended->error = std::current_exception();
  }
  if (ended->request->ticket) {
    finished_.emplace_back(ended->request->ticket, ended->error);
  } else if (ended->error && !error_) {
    fail(ended->error);
  }
  queue_.endFence([this](KeyOperation&& one) { carryOut(std::move(one)); });
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

void DistEngine::finishTickets() {
  // Not under the submit lock: finish() wakes submitters. Operations are counted before this side
  // sees them, so their tickets are the engine's alone.
  for (auto& [ticket, error] : finished_) ticket->finish(error);
  finished_.clear();
}

// ---- how a worker waits: for messages, for tasks, and without wake-ups while submitters poll

void DistEngine::wait(std::unique_lock<std::mutex>& lock) {
  if (transfers_.canSend() || queue_.fenceReady()) {
    link_.poll(events_, Deadline::in(0));
    return;
  }
  // A barrier waits for workers; only operations measure the servers.
  const bool waiting = queue_.unfinished() > 0;
  const auto begun = Clock::now();
  // A submitter that sends for this thread may begin a wait with a limit.
  Deadline until = transfers_.nextLook();
  if (until.at() > begun + kLookEvery) {
    until = Deadline::in(std::chrono::duration<double, std::milli>(kLookEvery).count());
  }
  link_.setReceiptsMatter(transfers_.awaitsReceipts());
  asleep_.store(true);
  // A new task is either seen here, or its submitter sees that it must wake this thread.
  if (hasTasks_.load() || stopping_.load()) until = Deadline::in(0);
  poll(lock, until);
  if (queue_.unfinished() == 0) return;
  const auto from = waiting ? begun : std::max(begun, lastProgress_);
  addWait(std::chrono::duration<double>(Clock::now() - from).count());
}

void DistEngine::addWait(double seconds) {
  waitSeconds_.store(waitSeconds_.load(std::memory_order_relaxed) + seconds,
                     std::memory_order_relaxed);
}

/// Returns or throws awake and with the lock.
void DistEngine::poll(std::unique_lock<std::mutex>& lock, Deadline until) {
  struct Awake {
    ~Awake() {
      held.lock();
      asleep.store(false, std::memory_order_relaxed);
    }
    std::unique_lock<std::mutex>& held;
    std::atomic<bool>& asleep;
  };
  lock.unlock();
  const Awake awake{lock, asleep_};
  link_.poll(events_, until);
}

/// The next operations are probably small: their submitters send them and poll for answers.
bool DistEngine::mayRest() const {
  return options_.lookNanoseconds > 0 && small_.load(std::memory_order_relaxed) && !isWaiting() &&
         !queue_.fenceWaits() && !error_;
}

/// As wait(), but messages do not wake it: submitters handle them, or it wakes up after a while.
void DistEngine::rest(std::unique_lock<std::mutex>& lock) {
  resting_.store(1);
  asleep_.store(true);
  // A new task is either seen here, or its submitter sees that it must wake this thread.
  if (!hasTasks_.load() && !stopping_.load()) {
    lock.unlock();
    futexWaitFor(resting_, 1, std::chrono::nanoseconds(kLookEvery).count());
    lock.lock();
  }
  resting_.store(0);
  asleep_.store(false);
  link_.poll(events_, Deadline::in(0));
}

void DistEngine::wakeThread() {
  if (resting_.exchange(0) != 0) {
    futexWake(&resting_);
  } else {
    link_.wake();
  }
}

bool DistEngine::look() {
  {
    const std::unique_lock lock(turn_, std::try_to_lock);
    if (!lock || !rests() || stopping_.load()) return false;
    guarded([&] {
      link_.poll(events_, Deadline::in(0));
      handleEvents();
      transfers_.sendSome();
    });
    const std::chrono::duration<double> looked = Clock::now() - lookedFrom_;
    if (isWaiting() && looked.count() * 1e9 < options_.lookNanoseconds) return true;
    addWait(looked.count());
    if (!isWaiting()) return false;
  }
  wakeThread();
  return false;
}

// ---- early ends: servers that are lost or do not answer

void DistEngine::lost(int rank, bool died) {
  if (died) lost_.fetch_add(1, std::memory_order_relaxed);
  // The servers report a lost worker that the store needs.
  if (rank < options_.workers) return;
  fail(Error(ErrorCode::peerLost,
             died ? link_.nameOf(rank) + " was lost: its process has ended"
                  : link_.nameOf(rank) + " has left while this store was in use")
           .withRank(rank));
}

Deadline::Clock::time_point DistEngine::waitsSince() const {
  const Transfer* const transfer = transfers_.oldest();
  if (transfer == nullptr) return current_ ? current_->begun : lastProgress_;
  return current_ ? std::min(current_->begun, transfer->sent) : transfer->sent;
}

void DistEngine::lookAtTime() {
  if (!isWaiting()) return;
  const auto now = Clock::now();
  const auto begun = waitsSince();
  if (presence_.ask(begun, now)) {
    for (int server = 0; server < link_.servers(); ++server) {
      link_.send(server, Header{.type = MessageType::deadNodes, .request = kPresenceRequest});
    }
  }
  std::string names;
  int blame = -1;
  for (const int server : presence_.silent(begun, now)) {
    if (blame < 0) blame = options_.workers + server;
    names += (names.empty() ? "" : ", ") + link_.nameOf(options_.workers + server);
  }
  // A server that answers has its own limit for workers, which must expire first.
  double limit = options_.timeoutMs;
  if (names.empty()) {
    limit = 1.25 * limit + 1000;
    if (std::chrono::duration<double, std::milli>(now - std::max(begun, lastProgress_)).count() <
        limit) {
      return;
    }
    names = "the servers (still connected)";
  }
  const Transfer* const transfer = transfers_.oldest();
  const std::string what = current_   ? current_->request->name
                           : transfer ? "key " + transfer->key().name
                                      : std::string("push");
  fail(Error(ErrorCode::timeout, what + ": " + names + " did not answer within " +
                                     std::to_string(static_cast<long>(limit)) +
                                     " ms; timeoutMs sets the deadline")
           .withRank(blame));
}

void DistEngine::fail(const Error& error) { fail(std::make_exception_ptr(error)); }

void DistEngine::fail(std::exception_ptr error) {
  if (error_) return;
  over_.store(true, std::memory_order_release);
  error_ = std::move(error);
  transfers_.failAll(keys_, error_);
  if (current_) {
    if (!current_->error) current_->error = error_;
    end();
  }
}

}  // namespace gradlink::dist
