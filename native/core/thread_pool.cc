#include "core/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/futex.h"

namespace gradlink {
namespace {

// How long a thread spins for work before it sleeps: a few futex wake-ups (about 7 us each). A
// longer spin would take the core from other ranks.
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr int kMaxThreads = 1024;

/// Spins until `done` or kSpin is over; returns done's last value.
template <class Done>
bool spinUntil(Done done) {
  if (done()) return true;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      cpuRelax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

thread_local bool insideParallel = false;

int widthFromEnvironment() {
  if (const char* text = std::getenv("GRADLINK_NUM_THREADS")) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= 1) {
      return static_cast<int>(std::min<long>(value, kMaxThreads));
    }
  }
  // The cores this process may run on: a container can have fewer than the machine.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u));
}

}  // namespace

struct ThreadPool::Job {
  // Set in `users` while the caller sleeps on it.
  static constexpr std::uint32_t kCallerSleeps = 1u << 31;

  /// Consecutive parts, handed out in order.
  struct alignas(64) Range {
    std::atomic<std::size_t> taken{0};
  };
  static constexpr std::size_t kMostRanges = 32;

  Job(const std::function<void(std::size_t)>& body, std::size_t parts, int width)
      : body(&body), parts(parts), count(std::min<std::size_t>(width, kMostRanges)) {}

  const std::function<void(std::size_t)>* body;
  const std::size_t parts;
  const std::size_t count;  // of ranges
  Range ranges[kMostRanges];
  // Pool threads that hold a pointer to this job. The caller returns only at 0.
  std::atomic<std::uint32_t> users{0};
  Job* following = nullptr;

  std::size_t begin(std::size_t range) const { return range * parts / count; }
  std::size_t size(std::size_t range) const { return begin(range + 1) - begin(range); }
  bool exhausted() const {
    for (std::size_t r = 0; r < count; ++r) {
      if (ranges[r].taken.load(std::memory_order_relaxed) < size(r)) return false;
    }
    return true;
  }
  /// Each thread first takes the parts of its own range, the same in every call, which may still be
  /// cached. Then it helps with the next range, so a starved thread delays nobody.
  void work(std::size_t thread) {
    for (std::size_t step = 0; step < count; ++step) {
      const std::size_t r = (thread + step) % count;
      for (;;) {
        const std::size_t i = ranges[r].taken.fetch_add(1, std::memory_order_relaxed);
        if (i >= size(r)) break;
        (*body)(begin(r) + i);
      }
    }
  }
};

struct ThreadPool::Impl {
  explicit Impl(int width) : width(width) {}

  const int width;
  std::mutex mutex;  // guards jobs, started
  Job* jobs = nullptr;
  bool started = false;
  // Changes with every new job; idle threads sleep on it.
  std::atomic<std::uint32_t> epoch{0};
  std::atomic<std::uint32_t> sleepers{0};

  void start() {
    started = true;
    for (int i = 1; i < width; ++i) {
      try {
        std::thread([this, i] { serve(static_cast<std::size_t>(i)); }).detach();
      } catch (const std::system_error&) {
        return;  // no more threads to be had: the caller and those that started do all the parts
      }
    }
  }

  void add(Job& job) {
    {
      const std::lock_guard lock(mutex);
      if (!started) start();
      job.following = jobs;
      jobs = &job;
    }
    // Sequentially consistent on both sides: here epoch then sleepers, in serve sleepers then epoch
    // (inside futexWait). So either this sees the sleeper or the sleeper sees the new epoch.
    epoch.fetch_add(1);
    if (sleepers.load() != 0) {
      const std::size_t wanted = std::min<std::size_t>(job.parts - 1, width - 1);
      futexWake(&epoch, static_cast<int>(wanted));
    }
  }

  void remove(Job& job) {
    {
      const std::lock_guard lock(mutex);
      Job** link = &jobs;
      while (*link != &job) link = &(*link)->following;
      *link = job.following;
    }
    const auto released = [&] { return job.users.load(std::memory_order_acquire) == 0; };
    if (spinUntil(released)) return;
    std::uint32_t users = job.users.fetch_or(Job::kCallerSleeps, std::memory_order_acq_rel);
    users |= Job::kCallerSleeps;
    while (users != Job::kCallerSleeps) {
      futexWait(job.users, users);
      users = job.users.load(std::memory_order_acquire);
    }
  }

  Job* take() {
    const std::lock_guard lock(mutex);
    for (Job* job = jobs; job != nullptr; job = job->following) {
      if (job->exhausted()) continue;
      job->users.fetch_add(1, std::memory_order_relaxed);
      return job;
    }
    return nullptr;
  }

  static void release(Job* job) {
    // The job may be freed right after the subtraction: only its address is used from there on.
    const std::atomic<std::uint32_t>* word = &job->users;
    if (job->users.fetch_sub(1, std::memory_order_acq_rel) == (Job::kCallerSleeps | 1u)) {
      futexWake(word, 1);
    }
  }

  [[noreturn]] void serve(std::size_t index) {
    insideParallel = true;
    for (;;) {
      const std::uint32_t seen = epoch.load();
      if (Job* job = take()) {
        job->work(index);
        release(job);
        continue;
      }
      if (spinUntil([&] { return epoch.load(std::memory_order_relaxed) != seen; })) continue;
      sleepers.fetch_add(1);
      futexWait(epoch, seen);
      sleepers.fetch_sub(1);
    }
  }
};

ThreadPool& ThreadPool::shared() {
  static ThreadPool* const pool = [] {
    static ThreadPool* made = new ThreadPool(widthFromEnvironment());
    // A forked child has none of the threads and may have a locked mutex: it starts over.
    pthread_atfork(nullptr, nullptr, [] { made->impl_ = new Impl(made->impl_->width); });
    return made;
  }();
  return *pool;
}

ThreadPool::ThreadPool(int width) : impl_(new Impl(width)) {}

int ThreadPool::width() const { return impl_->width; }

void ThreadPool::parallel(std::size_t parts, const std::function<void(std::size_t)>& body) {
  // A part that calls parallel() runs it inline: the threads are busy with its siblings.
  if (parts <= 1 || impl_->width == 1 || insideParallel) {
    for (std::size_t part = 0; part < parts; ++part) body(part);
    return;
  }
  Job job(body, parts, impl_->width);
  impl_->add(job);
  insideParallel = true;
  job.work(0);
  insideParallel = false;
  impl_->remove(job);
}

}  // namespace gradlink
