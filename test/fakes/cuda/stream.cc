#include "cuda/stream.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <utility>

#include "cuda/capture.h"
#include "cuda/context.h"

namespace gradlink::fake {
namespace {

/// About as many as a channel of a GPU has entries.
constexpr std::size_t kMostQueued = 1024;

thread_local double latest = 0;
std::atomic<std::uint64_t> queuedInAll = 0;

struct StreamThread {
  std::shared_ptr<Stream> stream;
  std::thread thread;
};
struct Threads {
  std::mutex mutex;
  std::list<StreamThread> running;
  static Threads& get() {
    static Threads& threads = *new Threads;
    return threads;
  }
};

}  // namespace

double hostTime() { return latest; }
void hostReached(double seconds) { latest = std::max(latest, seconds); }

void Mark::set(double time) {
  {
    const std::lock_guard lock(mutex_);
    set_ = true;
    time_ = time;
  }
  changed_.notify_all();
}

double Mark::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return set_; });
  return time_;
}

bool Mark::done() const {
  const std::lock_guard lock(mutex_);
  return set_;
}

double Mark::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

std::uint64_t HardwareQueue::place() {
  const std::lock_guard lock(mutex_);
  return places_++;
}

void HardwareQueue::await(std::uint64_t place) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == place; });
}

void HardwareQueue::next() {
  {
    const std::lock_guard lock(mutex_);
    ++turn_;
  }
  changed_.notify_all();
}

Stream::Stream(Context& context) : context_(context), queue_(context.nextQueue()) {}

std::shared_ptr<Stream> Stream::start(Context& context) {
  joinFinished();
  auto stream = std::make_shared<Stream>(context);
  Threads& threads = Threads::get();
  const std::lock_guard lock(threads.mutex);
  threads.running.push_back({.stream = stream, .thread = std::thread([stream] { stream->run(); })});
  return stream;
}

void Stream::joinFinished() {
  Threads& threads = Threads::get();
  std::list<StreamThread> finished;
  {
    const std::lock_guard lock(threads.mutex);
    for (auto at = threads.running.begin(); at != threads.running.end();) {
      const auto here = at++;
      if (here->stream->finished()) finished.splice(finished.end(), threads.running, here);
    }
  }
  for (StreamThread& each : finished) each.thread.join();
}

void Stream::joinClosed() {
  // A kernel that never ends keeps its closed stream busy forever: then the others do not wait
  // longer than this.
  constexpr auto kStep = std::chrono::milliseconds(2);
  constexpr int kSteps = 100;
  const auto anyFinishing = [] {
    Threads& threads = Threads::get();
    const std::lock_guard lock(threads.mutex);
    return std::any_of(threads.running.begin(), threads.running.end(),
                       [](const StreamThread& each) { return each.stream->finishing(); });
  };
  for (int step = 0; step < kSteps && anyFinishing(); ++step) std::this_thread::sleep_for(kStep);
  joinFinished();
}

bool Stream::finishing() {
  const std::lock_guard lock(mutex_);
  return closed_ && (busy_ || !items_.empty());
}

bool Stream::finished() {
  const std::lock_guard lock(mutex_);
  return closed_ && !busy_ && items_.empty();
}

void Stream::add(Item item) {
  item.queuedAt = hostTime();
  {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return ended_ || items_.size() < kMostQueued; });
    if (ended_) {
      if (item.set) item.set->set(clock_);
      return;
    }
    if (queue_ != nullptr) item.place = queue_->place();
    items_.push_back(std::move(item));
  }
  wake_.notify_one();
}

void Stream::push(Work work) { add({.work = std::move(work), .set = nullptr, .awaited = nullptr}); }

void Stream::record(std::shared_ptr<Mark> mark) {
  add({.work = nullptr, .set = std::move(mark), .awaited = nullptr});
}

void Stream::waitFor(std::shared_ptr<Mark> mark) {
  add({.work = nullptr, .set = nullptr, .awaited = std::move(mark)});
}

std::shared_ptr<Mark> Stream::end() {
  auto mark = std::make_shared<Mark>();
  record(mark);
  return mark;
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  if (busy_ || !items_.empty()) return false;
  hostReached(clock_);
  return true;
}

Stream::Captured Stream::captured() {
  const std::lock_guard lock(mutex_);
  if (captured_.capture && captured_.capture->ended()) captured_ = {};
  return captured_;
}

void Stream::capture(Captured captured) {
  const std::lock_guard lock(mutex_);
  captured_ = std::move(captured);
}

void Stream::countQueued() {
  ++queued_;
  ++queuedInAll;
}

std::uint64_t Stream::queuedOnAll() { return queuedInAll.load(); }

void Stream::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_one();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) {
      ended_ = true;
      room_.notify_all();
      return;
    }
    Item item = std::move(items_.front());
    items_.pop_front();
    room_.notify_one();
    busy_ = true;
    Execution execution{.context = context_, .now = std::max(clock_, item.queuedAt)};
    lock.unlock();
    if (queue_ != nullptr) queue_->await(item.place);
    // A broken context runs no more work, but releases those who wait.
    if (item.work && context_.status() == kOk) {
      const Status status = item.work(execution);
      if (status != kOk) context_.fail(status);
    }
    if (item.awaited) execution.now = std::max(execution.now, item.awaited->wait());
    if (queue_ != nullptr) queue_->next();
    const std::shared_ptr<Mark> mark = std::exchange(item.set, nullptr);
    item = {};
    lock.lock();
    clock_ = execution.now;
    busy_ = false;
    // Under the lock: who sees the mark also sees the stream idle, as a driver would say it.
    if (mark) mark->set(clock_);
  }
}

}  // namespace gradlink::fake
