#include "cuda/stream.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "core/error.h"
#include "cuda/abi_numbers.h"

namespace gradlink::cuda {
namespace {

/// Most waits are over within this; a thread that slept would wake later than that.
constexpr auto kPolling = std::chrono::microseconds(200);

unsigned flagsOf(Event::Use use) {
  switch (use) {
    case Event::Use::time:
      return 0;
    case Event::Use::sleep:
      return kDisableTiming | kBlockingSync;
    default:
      return kDisableTiming;
  }
}

/// Builds the message only when there is one to build: these calls are on the fast path.
void checkOn(Status status, const char* doing, const Device& device) {
  if (status != kSuccess) check(status, std::string(doing) + " on " + device.label() + " failed");
}

}  // namespace

Stream::Stream(Device& device) : device_(device) {
  device.makeCurrent();
  checkOn(Driver::get().streamCreate(&handle_, kNonBlocking), "making a stream", device);
}

Stream::~Stream() {
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
  while (Deadline::Clock::now() - start < kPolling) {
    if (done()) return;
    std::this_thread::yield();
  }
  if (!end_) end_ = std::make_unique<Event>(device_, Event::Use::sleep);
  end_->record(*this);
  checkOn(Driver::get().eventSynchronize(end_->handle()), "the work of a stream", device_);
}

bool Stream::done() {
  device_.makeCurrent();
  const Status status = Driver::get().streamQuery(handle_);
  if (status == kNotReady) return false;
  checkOn(status, "the work of a stream", device_);
  return true;
}

Event::Event(Device& device, Use use) : device_(device) {
  device.makeCurrent();
  checkOn(Driver::get().eventCreate(&handle_, flagsOf(use)), "making an event", device);
}

Event::~Event() {
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
  device_.makeCurrent();
  checkOn(Driver::get().eventSynchronize(handle_), "the work before an event", device_);
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
  // What comes down in 10 ms is noticed late by half of this, half a hundredth.
  constexpr auto kLongestSleep = std::chrono::microseconds(100);
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
      // What ended meanwhile was in time.
      if (done()) return;
      throw Error(ErrorCode::timeout, std::string(what) + " did not end within the deadline");
    }
    const Clock::duration waited = now - start;
    if (waited < kPolling) {
      std::this_thread::yield();
    } else {
      // A sixteenth of what was waited already: late by no more than that share.
      std::this_thread::sleep_for(std::min<Clock::duration>(waited / 16, kLongestSleep));
    }
  }
}

}  // namespace gradlink::cuda
