#include "cuda/stream.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "core/error.h"
#include "cuda/abi_numbers.h"

namespace gradlink::cuda {
namespace {

using namespace std::chrono_literals;

/// Most batches of a store and most collectives take less; a sleeping thread would wake later.
constexpr auto kPolling = 1ms;
/// Work of 10 ms is noticed late by half of this, half a percent.
constexpr auto kLongestPause = 100us;

/// Sleeps, or yields for a pause of zero.
void pauseFor(std::chrono::nanoseconds pause) {
  if (pause == 0ns) return std::this_thread::yield();
  wakePrecisely();
  std::this_thread::sleep_for(pause);
}

/// Builds the message only on failure: these calls are on the fast path.
void checkOn(Status status, const char* doing, const Device& device) {
  if (status != kSuccess) check(status, std::string(doing) + " on " + device.label() + " failed");
}

}  // namespace

std::chrono::nanoseconds pauseAfter(std::chrono::nanoseconds waited) {
  if (waited < kPolling) return 0ns;
  // A sixteenth of the wait so far limits the added latency to that share.
  return std::min<std::chrono::nanoseconds>(waited / 16, kLongestPause);
}

void wakePrecisely() {
  thread_local bool done = false;
  if (done) return;
  done = true;
  // If refused, sleeps are longer.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));
}

Stream::Stream(Device& device) : device_(device) {
  const SameContext same;
  device.makeCurrent();
  checkOn(Driver::get().streamCreate(&handle_, kNonBlocking), "making a stream", device);
}

Stream::~Stream() {
  const SameContext same;
  const Driver& driver = Driver::get();
  if (driver.setCurrent(device_.context()) == kSuccess) driver.streamDestroy(handle_);
}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  device_.makeCurrent();
  checkOn(Driver::get().copyAsync(addressOf(to), addressOf(from), bytes, handle_), "a copy",
          device_);
}

void Stream::copyPeer(void* to, Device& toDevice, const void* from, Device& fromDevice,
                      std::size_t bytes) {
  if (bytes == 0) return;
  device_.makeCurrent();
  checkOn(Driver::get().copyPeerAsync(addressOf(to), toDevice.context(), addressOf(from),
                                      fromDevice.context(), bytes, handle_),
          "a copy between GPUs", device_);
}

void Stream::zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  device_.makeCurrent();
  checkOn(Driver::get().fillBytesAsync(addressOf(to), 0, bytes, handle_), "zeroing", device_);
}

void Stream::wait(const Event& event) {
  device_.makeCurrent();
  checkOn(Driver::get().streamWaitEvent(handle_, event.handle(), 0), "waiting for an event",
          device_);
}

void Stream::synchronize() {
  const Deadline::Clock::time_point start = Deadline::Clock::now();
  while (!done()) pauseFor(pauseAfter(Deadline::Clock::now() - start));
}

bool Stream::done() {
  device_.makeCurrent();
  const Status status = Driver::get().streamQuery(handle_);
  if (status == kNotReady) return false;
  checkOn(status, "the work of a stream", device_);
  return true;
}

Event::Event(Device& device, bool timed) : device_(device) {
  const SameContext same;
  device.makeCurrent();
  checkOn(Driver::get().eventCreate(&handle_, timed ? 0 : kDisableTiming), "making an event",
          device);
}

Event::~Event() {
  const SameContext same;
  const Driver& driver = Driver::get();
  if (driver.setCurrent(device_.context()) == kSuccess) driver.eventDestroy(handle_);
}

void Event::record(Stream& stream) {
  device_.makeCurrent();
  checkOn(Driver::get().eventRecord(handle_, stream.handle()), "recording an event", device_);
}

bool Event::done() const {
  device_.makeCurrent();
  const Status status = Driver::get().eventQuery(handle_);
  if (status == kNotReady) return false;
  checkOn(status, "the work before an event", device_);
  return true;
}

void Event::synchronize() const {
  const Deadline::Clock::time_point start = Deadline::Clock::now();
  while (!done()) pauseFor(pauseAfter(Deadline::Clock::now() - start));
}

double Event::secondsSince(const Event& earlier) const {
  device_.makeCurrent();
  float milliseconds = 0;
  checkOn(Driver::get().eventElapsedTime(&milliseconds, earlier.handle_, handle_),
          "taking the time between events", device_);
  return static_cast<double>(milliseconds) * 1e-3;
}

void await(const std::function<bool()>& done, Deadline deadline, const char* what,
           const std::function<void()>& troubled) {
  using Clock = Deadline::Clock;
  constexpr auto kBetweenQuestions = std::chrono::milliseconds(1);
  const Clock::time_point start = Clock::now();
  Clock::time_point asked = start;
  while (!done()) {
    const Clock::time_point now = Clock::now();
    if (troubled && now - asked >= kBetweenQuestions) {
      asked = now;
      troubled();
    }
    if (deadline.passed()) {
      // Work that has ended meanwhile was in time.
      if (done()) return;
      throw Error(ErrorCode::timeout, std::string(what) + " did not end within the deadline");
    }
    pauseFor(pauseAfter(now - start));
  }
}

}  // namespace gradlink::cuda
