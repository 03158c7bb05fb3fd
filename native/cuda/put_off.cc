#include "cuda/put_off.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace gradlink::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// How long one waits for what others do: who they wait for may be its own thread.
constexpr std::chrono::seconds kLongestWait(1);
/// What may be put off before new calls wait for it to be freed.
constexpr std::size_t kBytesPutOff = std::size_t{256} << 20;
constexpr std::size_t kBlocksPutOff = 1024;
/// After calls that waited in vain, how long none waits again.
constexpr std::chrono::seconds kPause(10);

struct Given {
  ContextHandle context;
  void* memory;
  std::size_t bytes;
  Free free;
};

/// Never destroyed: memory is given back until the process ends.
struct State {
  std::mutex mutex;
  std::condition_variable changed;
  int holders = 0;
  int freeing = 0;
  int launching = 0;
  int allocating = 0;
  std::vector<Given> given;
  std::size_t bytesGiven = 0;
  /// New calls wait to here for those under way to end, so that what was put off can be freed:
  /// calls that overlap forever would keep it forever.
  Clock::time_point drainUntil = Clock::time_point::min();
  Clock::time_point noDrainBefore = Clock::time_point::min();
};

State& state() {
  static State& all = *new State;
  return all;
}

/// Of this thread: what it does itself does not keep it waiting.
struct Own {
  int holders = 0;
  int launching = 0;
};
thread_local Own own;

/// To the deadline, which may be never.
template <class Done>
void waitUntil(std::unique_lock<std::mutex>& lock, const Deadline& deadline, const Done& done) {
  if (deadline.at() == Deadline::Clock::time_point::max()) {
    state().changed.wait(lock, done);
  } else {
    state().changed.wait_until(lock, deadline.at(), done);
  }
}

/// With `freeing` counted up. The driver waits in a free: not with the mutex held.
void freeCounted(std::span<const Given> given) noexcept {
  for (const Given& one : given) {
    if (one.context == nullptr || Driver::get().setCurrent(one.context) == kSuccess) {
      one.free(one.memory);
    }
  }
  const std::lock_guard lock(state().mutex);
  --state().freeing;
  state().changed.notify_all();
}

/// What was put off, to be freed: counts `freeing` up. With the mutex held.
std::vector<Given> takeGiven() noexcept {
  state().bytesGiven = 0;
  state().drainUntil = Clock::time_point::min();
  ++state().freeing;
  return std::exchange(state().given, {});
}

/// With the mutex held.
void drain() {
  const Clock::time_point now = Clock::now();
  if (now < state().noDrainBefore) return;
  state().drainUntil = now + kLongestWait;
  state().noDrainBefore = state().drainUntil + kPause;
}

/// A call within a call of this thread is part of it.
void waitForDrain(std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
  if (own.holders > 0) return;
  while (state().holders > 0 && Clock::now() < std::min(state().drainUntil, deadline.at())) {
    state().changed.wait_until(lock, std::min(state().drainUntil, deadline.at()));
  }
}

}  // namespace

FreesPutOff::FreesPutOff(const Deadline& deadline) {
  std::unique_lock lock(state().mutex);
  waitForDrain(lock, deadline);
  ++state().holders;
  ++own.holders;
  waitUntil(lock, deadline, [] { return state().freeing == 0; });
}

FreesPutOff::~FreesPutOff() {
  std::vector<Given> given;
  {
    const std::lock_guard lock(state().mutex);
    --own.holders;
    --state().holders;
    state().changed.notify_all();
    if (state().holders > 0 || state().given.empty()) return;
    given = takeGiven();
  }
  freeCounted(given);
}

Launching::Launching(const Deadline& deadline) {
  std::unique_lock lock(state().mutex);
  ++state().launching;
  ++own.launching;
  waitUntil(lock, deadline, [] { return state().allocating == 0; });
}

Launching::~Launching() {
  const std::lock_guard lock(state().mutex);
  --state().launching;
  --own.launching;
  state().changed.notify_all();
}

Allocating::Allocating() {
  std::unique_lock lock(state().mutex);
  state().changed.wait_for(lock, kLongestWait, [] { return state().launching == own.launching; });
  ++state().allocating;
}

Allocating::~Allocating() {
  const std::lock_guard lock(state().mutex);
  --state().allocating;
  state().changed.notify_all();
}

void freeOrPutOff(ContextHandle context, void* memory, std::size_t bytes, Free free) noexcept {
  const Given one{context, memory, bytes, free};
  {
    const std::lock_guard lock(state().mutex);
    if (state().holders > 0) {
      try {
        state().given.push_back(one);
        state().bytesGiven += bytes;
        if (state().bytesGiven > kBytesPutOff || state().given.size() > kBlocksPutOff) drain();
        return;
      } catch (const std::bad_alloc&) {
        // Then now, whatever it waits for.
      }
    }
    ++state().freeing;
  }
  freeCounted({&one, 1});
}

bool freeWhatWasPutOff() noexcept {
  std::vector<Given> given;
  {
    std::unique_lock lock(state().mutex);
    if (state().given.empty()) return false;
    drain();
    const auto othersGone = [] { return state().holders == own.holders; };
    if (!state().changed.wait_for(lock, kLongestWait, othersGone)) return false;
    // The last of the others may have freed it meanwhile.
    if (state().given.empty()) return true;
    given = takeGiven();
  }
  freeCounted(given);
  return true;
}

}  // namespace gradlink::cuda
