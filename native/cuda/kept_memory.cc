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

struct Stock {
  MemorySource source;
  std::multimap<std::size_t, void*> kept;
  std::size_t keptBytes = 0;
  std::size_t inUse = 0;
  std::size_t mostInUse = 0;
};

/// Never destroyed: memory is given back until the process ends.
struct State {
  /// Held to launch over several GPUs, to give the driver memory, and to ask it for some where
  /// nothing is under way that it could wait for.
  std::recursive_mutex launching;
  /// Of the thread that has it: how many launches.
  int launches = 0;

  /// For all below; not held in calls of the driver.
  std::mutex mutex;
  int keepers = 0;
  int alone = 0;
  int noAllocations = 0;
  /// Calls that ask the driver for memory without the lock above.
  int allocating = 0;
  std::list<Stock> stocks;

  Stock& of(const MemorySource& source) {
    const auto found = std::find_if(stocks.begin(), stocks.end(),
                                    [&](const Stock& stock) { return stock.source == source; });
    return found != stocks.end() ? *found : stocks.emplace_back(Stock{source, {}});
  }
};

State& state() {
  static State& all = *new State;
  return all;
}

void freeNow(const MemorySource& source, void* memory) noexcept {
  // Else the context is broken or the driver has gone, and both have freed the memory.
  if (source.device == nullptr || Driver::get().setCurrent(source.device->context()) == kSuccess) {
    source.free(memory);
  }
}

/// Frees kept memory, the largest first, while there is a stock of which there is too much.
/// @returns whether there was any
template <class TooMuch>
bool freeWhile(const TooMuch& tooMuch) noexcept {
  const std::lock_guard launching(state().launching);
  for (bool any = false;; any = true) {
    std::unique_lock lock(state().mutex);
    const auto found =
        std::find_if(state().stocks.begin(), state().stocks.end(),
                     [&](const Stock& stock) { return !stock.kept.empty() && tooMuch(stock); });
    if (found == state().stocks.end()) return any;
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
  freeWhile([](const Stock&) { return state().keepers == 0; });
}

/// Of this thread.
thread_local int ownNoAllocations = 0;

/// At most a second: who is waited for may wait for what this thread does.
template <class Done>
bool waitAWhile(const Done& done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

/// Memory of the driver. Beside launches that are alone the driver may wait for these, and they for
/// others that still come: then it is asked without the lock that those need.
class Asking {
 public:
  Asking(const MemorySource& source, std::size_t bytes, void** memory)
      : source_(source), bytes_(bytes), memory_(memory) {}

  Status ask() {
    waitAWhile([] {
      const std::lock_guard lock(state().mutex);
      return state().noAllocations == ownNoAllocations;
    });
    waitAWhile([this] { return launching_.try_lock(); });
    if (isQuiet()) {
      freeWhile([this](const Stock& stock) {
        const std::size_t inUse = stock.inUse + bytes_;
        return stock.source == source_ &&
               inUse + stock.keptBytes > std::max(inUse, stock.mostInUse);
      });
    }
    const Status status = isQuiet() ? allocate() : allocateBeside();
    if (status != kOutOfMemory || !waitAWhile([this] { return becomesQuiet(); })) return status;
    const bool any =
        freeWhile([this](const Stock& stock) { return stock.source.device == source_.device; });
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

/// The turn of a launch over several GPUs. The driver would keep it waiting behind who asks for
/// memory beside launches that are alone, and it them; so it lets these end first.
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
  // What waits for the GPU has ended, and nothing new begins.
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
  ++state().keepers;
}

KeepMemory::~KeepMemory() {
  {
    const std::lock_guard lock(state().mutex);
    if (--state().keepers > 0) return;
    for (Stock& stock : state().stocks) stock.mostInUse = stock.inUse;
  }
  freeAllUnlessKept();
}

Status takeMemory(const MemorySource& source, std::size_t bytes, void** memory, bool fresh) {
  const auto take = [&](bool isNew) {
    const std::lock_guard lock(state().mutex);
    Stock& stock = state().of(source);
    if (!isNew) {
      const auto found = stock.kept.find(bytes);
      if (found == stock.kept.end()) return false;
      *memory = found->second;
      stock.kept.erase(found);
      stock.keptBytes -= bytes;
    }
    stock.inUse += bytes;
    stock.mostInUse = std::max(stock.mostInUse, stock.inUse);
    return true;
  };
  if (!fresh && take(false)) return kSuccess;
  const Status status = Asking(source, bytes, memory).ask();
  if (status == kSuccess) take(true);
  return status;
}

void giveMemoryBack(const MemorySource& source, std::size_t bytes, void* memory) noexcept {
  try {
    const std::lock_guard lock(state().mutex);
    Stock& stock = state().of(source);
    stock.inUse -= bytes;
    stock.kept.emplace(bytes, memory);
    stock.keptBytes += bytes;
    if (state().keepers > 0) return;
  } catch (const std::bad_alloc&) {
    const std::lock_guard launching(state().launching);
    freeNow(source, memory);
  }
  freeAllUnlessKept();
}

}  // namespace gradlink::cuda
