#include "cuda/put_off.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace gradlink::cuda {
namespace {

/// How long an allocation waits for what others do: who they wait for may be its own thread.
constexpr std::chrono::seconds kPatience(1);

struct Given {
  ContextHandle context;
  void* memory;
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

void freeOne(const Given& one) noexcept {
  if (one.context == nullptr || Driver::get().setCurrent(one.context) == kSuccess) {
    one.free(one.memory);
  }
}

/// With `freeing` counted up. The driver waits in a free: not with the mutex held.
void freeCounted(const std::vector<Given>& given) noexcept {
  for (const Given& one : given) freeOne(one);
  const std::lock_guard lock(state().mutex);
  --state().freeing;
  state().changed.notify_all();
}

}  // namespace

FreesPutOff::FreesPutOff(const Deadline& deadline) {
  std::unique_lock lock(state().mutex);
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
    given.swap(state().given);
    ++state().freeing;
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
  state().changed.wait_for(lock, kPatience, [] { return state().launching == own.launching; });
  ++state().allocating;
}

Allocating::~Allocating() {
  const std::lock_guard lock(state().mutex);
  --state().allocating;
  state().changed.notify_all();
}

void freeOrPutOff(ContextHandle context, void* memory, Free free) noexcept {
  const Given one{context, memory, free};
  {
    const std::lock_guard lock(state().mutex);
    if (state().holders > 0) {
      try {
        state().given.push_back(one);
        return;
      } catch (const std::bad_alloc&) {
        // Then now, whatever it waits for.
      }
    }
    ++state().freeing;
  }
  freeOne(one);
  const std::lock_guard lock(state().mutex);
  --state().freeing;
  state().changed.notify_all();
}

bool freeWhatWasPutOff() noexcept {
  std::vector<Given> given;
  {
    std::unique_lock lock(state().mutex);
    if (state().given.empty()) return false;
    const auto othersGone = [] { return state().holders == own.holders; };
    if (!state().changed.wait_for(lock, kPatience, othersGone)) return false;
    // The last of the others may have freed it meanwhile.
    if (state().given.empty()) return true;
    given.swap(state().given);
    ++state().freeing;
  }
  freeCounted(given);
  return true;
}

}  // namespace gradlink::cuda
