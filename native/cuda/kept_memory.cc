#include "cuda/kept_memory.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>

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
  /// Held to launch over several GPUs, and to ask the driver for memory or give it some.
  std::recursive_mutex launching;
  /// Of the thread that has it: how many launches.
  int launches = 0;

  /// For all below; not held in calls of the driver.
  std::mutex mutex;
  int keepers = 0;
  int alone = 0;
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

Status takeNew(const MemorySource& source, std::size_t bytes, void** memory) {
  const std::lock_guard launching(state().launching);
  const auto quiet = [] { return state().launches == 0 && state().alone == 0; };
  const auto allocate = [&] {
    if (source.device != nullptr) source.device->makeCurrent();
    return source.allocate(memory, bytes);
  };
  freeWhile([&](const Stock& stock) {
    const std::size_t inUse = stock.inUse + bytes;
    return stock.source == source && quiet() &&
           inUse + stock.keptBytes > std::max(inUse, stock.mostInUse);
  });
  const Status status = allocate();
  if (status != kOutOfMemory || !freeWhile([&](const Stock& stock) {
        return stock.source.device == source.device && quiet();
      })) {
    return status;
  }
  return allocate();
}

}  // namespace

Launching::Launching(bool alone, Deadline deadline, const char* op,
                     const std::function<void()>& look)
    : alone_(alone) {
  await([] { return state().launching.try_lock(); }, deadline, op, look);
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

KeepMemory::KeepMemory() {
  const std::lock_guard lock(state().mutex);
  ++state().keepers;
}

KeepMemory::~KeepMemory() {
  {
    const std::lock_guard lock(state().mutex);
    if (--state().keepers > 0) return;
  }
  freeAllUnlessKept();
}

Status takeMemory(const MemorySource& source, std::size_t bytes, void** memory) {
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
  if (take(false)) return kSuccess;
  const Status status = takeNew(source, bytes, memory);
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
