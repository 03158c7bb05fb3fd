#include "measure/memory_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "measure/page_buffer.h"

namespace gradlink::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64;

/// Not zero: some processors write lines of zeros past the caches in half the time. Sums in place
/// soon are infinite, which costs what other numbers do.
constexpr float kContent = 1;

// Larger results stay in no cache, so streaming stores save reading them first.
constexpr std::size_t kStreamFrom = std::size_t{16} << 20;

int arraysOf(const MemoryBandwidthOptions& options) {
  switch (options.loop) {
    case MemoryLoop::copy:
      return 2;
    case MemoryLoop::triad:
      return 3;
    case MemoryLoop::reduceInPlace:
      return options.arrays;
    case MemoryLoop::reduceOutOfPlace:
      return 2 * options.arrays;
    case MemoryLoop::reduceToOne:
      return options.arrays + 1;
  }
  return 0;
}

double passesOf(const MemoryBandwidthOptions& options) {
  switch (options.loop) {
    case MemoryLoop::copy:
      return 2;
    case MemoryLoop::triad:
      return 3;
    case MemoryLoop::reduceInPlace:
    case MemoryLoop::reduceOutOfPlace:
      return 2.0 * options.arrays;
    case MemoryLoop::reduceToOne:
      return options.arrays + 1.0;
  }
  return 0;
}

/// The memory of all arrays, one range a thread: later calls use it from its first toucher.
struct LoopMemory {
  PageBuffer pages;
  std::size_t stretch = 0;
  int threads = 0;
  bool huge = false;

  bool fits(std::size_t bytes, const MemoryBandwidthOptions& options) const {
    return pages && stretch >= bytes && threads == options.threads && huge == options.hugePages;
  }
  std::uint8_t* of(std::size_t thread) const {
    return static_cast<std::uint8_t*>(pages.get()) + thread * stretch;
  }
};

class KeptMemory {
 public:
  static KeptMemory& shared() {
    static KeptMemory memory;
    return memory;
  }
  LoopMemory take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(memory_, {});
  }
  void leave(LoopMemory memory) {
    const std::lock_guard lock(mutex_);
    memory_ = std::move(memory);
  }

 private:
  std::mutex mutex_;
  LoopMemory memory_;
};

/// `bytes`: of each thread's range.
LoopMemory loopMemory(std::size_t bytes, const MemoryBandwidthOptions& options) {
  LoopMemory kept = KeptMemory::shared().take();
  if (kept.fits(bytes, options)) return kept;
  kept = {};
  const std::size_t unit = options.hugePages && bytes >= kHugePageBytes ? kHugePageBytes : kPage;
  const std::size_t stretch = (bytes + unit - 1) / unit * unit;
  const auto threads = static_cast<std::size_t>(options.threads);
  if (stretch < bytes || stretch > SIZE_MAX / threads) throw tooLarge(bytes);
  return {allocatePages(stretch * threads, options.hugePages), stretch, options.threads,
          options.hugePages};
}

struct Part {
  std::vector<void*> arrays;
  std::size_t bytes;

  void run(const MemoryBandwidthOptions& options) const {
    const std::size_t count = bytes / sizeof(float);
    const std::vector<const void*> in(arrays.begin(), arrays.end());
    const std::span<void* const> all(arrays);
    const std::span<const void* const> sources(in.data(),
                                               std::min<std::size_t>(options.arrays, in.size()));
    const bool streaming = options.bytes >= kStreamFrom;
    switch (options.loop) {
      case MemoryLoop::copy:
        std::memcpy(arrays[0], arrays[1], bytes);
        break;
      case MemoryLoop::triad: {
        constexpr double kWeights[] = {1, 3};
        weightedSum(arrays[0], std::span(in).subspan(1), kWeights, count, DType::float32);
        break;
      }
      case MemoryLoop::reduceInPlace:
        reduceMany(all, sources, count, DType::float32, ReduceOp::sum);
        break;
      case MemoryLoop::reduceOutOfPlace:
      case MemoryLoop::reduceToOne:
        reduceMany(all.subspan(sources.size()), sources, count, DType::float32, ReduceOp::sum,
                   streaming);
        break;
    }
  }
};

void check(const MemoryBandwidthOptions& options) {
  const auto require = [](bool good, const char* what, long long got) {
    if (good) return;
    throw Error(ErrorCode::invalidArgument,
                std::string(what) + " must be at least 1, got " + std::to_string(got))
        .withOp("memoryBandwidth")
        .stillUsable();
  };
  require(options.arrays >= 1, "arrays", options.arrays);
  require(options.threads >= 1, "threads", options.threads);
  require(options.samples >= 1, "samples", options.samples);
  require(options.repeats >= 1, "repeats", options.repeats);
}

}  // namespace

MemoryBandwidth memoryBandwidth(const MemoryBandwidthOptions& options) {
  check(options);
  const auto threads = static_cast<std::size_t>(options.threads);
  const std::size_t partBytes = std::max(kLine, options.bytes / threads / kLine * kLine);
  const auto arrays = static_cast<std::size_t>(arraysOf(options));
  if (partBytes > SIZE_MAX / arrays) throw tooLarge(partBytes);
  LoopMemory memory = loopMemory(partBytes * arrays, options);

  MemoryBandwidth result;
  result.bytes = passesOf(options) * static_cast<double>(partBytes) * static_cast<double>(threads);
  // Some threads could not start: the others must not wait for them.
  std::atomic<bool> cancelled{false};
  std::barrier gate(options.threads);
  const auto work = [&](std::size_t thread) {
    Part part{{}, partBytes};
    for (std::size_t array = 0; array < arrays; ++array) {
      part.arrays.push_back(memory.of(thread) + array * partBytes);
      std::fill_n(static_cast<float*>(part.arrays.back()), partBytes / sizeof(float), kContent);
    }
    gate.arrive_and_wait();
    if (cancelled) return;
    for (int pass = 0; pass < options.warmup; ++pass) part.run(options);
    for (int sample = 0; sample < options.samples; ++sample) {
      gate.arrive_and_wait();
      const auto start = Clock::now();
      for (int pass = 0; pass < options.repeats; ++pass) part.run(options);
      gate.arrive_and_wait();
      if (thread != 0) continue;
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      result.seconds.push_back(elapsed.count() / options.repeats);
    }
  };
  std::vector<std::thread> others;
  try {
    for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  } catch (const std::system_error& error) {
    cancelled = true;
    for (std::size_t missing = others.size(); missing < threads; ++missing) gate.arrive_and_drop();
    for (std::thread& other : others) other.join();
    throw Error(ErrorCode::system, std::string("cannot start ") + std::to_string(threads) +
                                       " threads: " + error.what())
        .withOp("memoryBandwidth")
        .stillUsable();
  }
  work(0);
  for (std::thread& other : others) other.join();
  if (options.keep) KeptMemory::shared().leave(std::move(memory));
  return result;
}

}  // namespace gradlink::measure
