#include "cuda/kept_memory.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "cuda/abi_numbers.h"
#include "cuda/driver.h"
#include "cuda/stream.h"

namespace gradlink::cuda {
namespace {

struct Pool {
  MemorySource source;
  std::multimap<std::size_t, void*> kept;
  std::size_t keptBytes = 0;
  std::size_t inUse = 0;
  std::size_t mostInUse = 0;
};

/// Never destroyed: memory is freed until the process ends.
struct State {
  /// Held to launch over several GPUs, to free memory of the driver, and to allocate where nothing
  /// is under way that the driver could wait for.
  std::recursive_mutex launching;
  /// Nested launches of the thread that holds it.
  int launches = 0;

  /// Guards everything below; not held in calls of the driver.
  std::mutex mutex;
  int keeping = 0;
  int alone = 0;
  int noAllocations = 0;
  /// Calls that allocate from the driver without the lock above.
  int allocating = 0;
  std::list<Pool> pools;

  Pool& of(const MemorySource& source) {
    const auto found = std::find_if(pools.begin(), pools.end(),
                                    [&](const Pool& pool) { return pool.source == source; });
    return found != pools.end() ? *found : pools.emplace_back(Pool{source, {}});
  }
};

State& state() {
  static State& all = *new State;
  return all;
}

void freeNow(const MemorySource& source, void* memory) noexcept {
  // Otherwise the context is broken or the driver has gone, and the memory with it.
  if (source.device == nullptr || Driver::get().setCurrent(source.device->context()) == kSuccess) {
    source.free(memory);
  }
}

/// Frees kept memory, the largest first, while tooMuch(). @returns whether anything was freed
template <class TooMuch>
bool freeWhile(const TooMuch& tooMuch) noexcept {
  const std::lock_guard launching(state().launching);
  for (bool any = false;; any = true) {
    std::unique_lock lock(state().mutex);
    const auto found =
        std::find_if(state().pools.begin(), state().pools.end(),
                     [&](const Pool& pool) { return !pool.kept.empty() && tooMuch(pool); });
    if (found == state().pools.end()) return any;
    const auto largest = std::prev(found->kept.end());
    const auto [bytes, memory] = *largest;
    found->kept.erase(largest);
    found->keptBytes -= bytes;
    const MemorySource source = found->source;
    lock.unlock();
    freeNow(source, memory);
  }
}

void freeAllUnlessKept() noexcept {
  freeWhile([](const Pool&) { return state().keeping == 0; });
}

thread_local int ownNoAllocations = 0;

/// Waits at most a second: the awaited thread may wait for this one.
template <class Done>
bool waitAWhile(const Done& done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// Allocates memory of the driver. Beside launches that are alone the driver may wait for them, and
/// they for others that still come: it then allocates without the lock that those need.
class DriverAllocation {
 public:
  DriverAllocation(const MemorySource& source, std::size_t bytes, void** memory)
      : source_(source), bytes_(bytes), memory_(memory) {}

  Status run() {
    waitAWhile([] {
      const std::lock_guard lock(state().mutex);
      return state().noAllocations == ownNoAllocations;
    });
    waitAWhile([this] { return launching_.try_lock(); });
    if (isQuiet()) {
      freeWhile([this](const Pool& pool) {
        const std::size_t inUse = pool.inUse + bytes_;
        return pool.source == source_ && inUse + pool.keptBytes > std::max(inUse, pool.mostInUse);
      });
    }
    const Status status = isQuiet() ? allocate() : allocateBeside();
    if (status != kOutOfMemory || !waitAWhile([this] { return becomesQuiet(); })) return status;
    const bool any =
        freeWhile([this](const Pool& pool) { return pool.source.device == source_.device; });
    return any ? allocate() : status;
  }

 private:
  /// Nothing is under way, and while the lock is held nothing begins.
  bool isQuiet() const {
    if (!launching_.owns_lock() || state().launches != 0) return false;
    const std::lock_guard lock(state().mutex);
    return state().alone == 0;
  }
  bool becomesQuiet() {
    if (!launching_.owns_lock() && !launching_.try_lock()) return false;
    if (isQuiet()) return true;
    launching_.unlock();
    return false;
  }
  Status allocate() {
    if (source_.device != nullptr) source_.device->makeCurrent();
    return source_.allocate(memory_, bytes_);
  }
  Status allocateBeside() {
    if (launching_.owns_lock()) launching_.unlock();
    const Beside beside;
    return allocate();
  }
  struct Beside {
    Beside() { count(1); }
    ~Beside() { count(-1); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    static void count(int one) {
      const std::lock_guard lock(state().mutex);
      state().allocating += one;
    }
  };

  const MemorySource& source_;
  const std::size_t bytes_;
  void** const memory_;
  std::unique_lock<std::recursive_mutex> launching_{state().launching, std::defer_lock};
};

/// The turn of a launch over several GPUs. The driver would block it behind allocations beside
/// launches that are alone, and those would wait for it; so it lets these allocations end first.
bool takeTurn(bool alone) {
  if (!state().launching.try_lock()) return false;
  if (alone || state().launches != 0) return true;
  const std::lock_guard lock(state().mutex);
  if (state().allocating == 0) return true;
  state().launching.unlock();
  return false;
}

}  // namespace

Launching::Launching(bool alone, Deadline deadline, const char* op,
                     const std::function<void()>& look)
    : alone_(alone) {
  await([alone] { return takeTurn(alone); }, deadline, op, look);
  if (!alone) {
    ++state().launches;
    return;
  }
  // Waits for the GPU have ended, and no new one begins.
  const std::lock_guard lock(state().mutex);
  ++state().alone;
  state().launching.unlock();
}

Launching::~Launching() {
  if (alone_) {
    const std::lock_guard lock(state().mutex);
    --state().alone;
  } else {
    --state().launches;
    state().launching.unlock();
  }
}

NoAllocations::NoAllocations() {
  const std::lock_guard lock(state().mutex);
  ++state().noAllocations;
  ++ownNoAllocations;
}

NoAllocations::~NoAllocations() {
  const std::lock_guard lock(state().mutex);
  --state().noAllocations;
  --ownNoAllocations;
}

KeepMemory::KeepMemory() {
  const std::lock_guard lock(state().mutex);
  ++state().keeping;
}

KeepMemory::~KeepMemory() {
  {
    const std::lock_guard lock(state().mutex);
    if (--state().keeping > 0) return;
    for (Pool& pool : state().pools) pool.mostInUse = pool.inUse;
  }
  freeAllUnlessKept();
}

Status takeMemory(const MemorySource& source, std::size_t bytes, void** memory, bool fresh) {
  const auto take = [&](bool isNew) {
    const std::lock_guard lock(state().mutex);
    Pool& pool = state().of(source);
    if (!isNew) {
      const auto found = pool.kept.find(bytes);
      if (found == pool.kept.end()) return false;
      *memory = found->second;
      pool.kept.erase(found);
      pool.keptBytes -= bytes;
    }
    pool.inUse += bytes;
    pool.mostInUse = std::max(pool.mostInUse, pool.inUse);
    return true;
  };
  if (!fresh && take(false)) return kSuccess;
  const Status status = DriverAllocation(source, bytes, memory).run();
  if (status == kSuccess) take(true);
  return status;
}

void giveMemoryBack(const MemorySource& source, std::size_t bytes, void* memory) noexcept {
  try {
    const std::lock_guard lock(state().mutex);
    Pool& pool = state().of(source);
    pool.inUse -= bytes;
    pool.kept.emplace(bytes, memory);
    pool.keptBytes += bytes;
    if (state().keeping > 0) return;
  } catch (const std::bad_alloc&) {
    const std::lock_guard launching(state().launching);
    freeNow(source, memory);
  }
  freeAllUnlessKept();
}

}  // namespace gradlink::cuda
