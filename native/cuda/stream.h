// Streams and events of a GPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/deadline.h"
#include "cuda/device.h"

namespace gradlink::cuda {

class Event;

/// Does not synchronize with the default stream. Used by one thread at a time.
class Stream {
 public:
  explicit Stream(Device&);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  StreamHandle handle() const { return handle_; }

  /// Copies between pinned host memory and devices; without peer access the driver stages copies.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Copies between devices, with or without peer access.
  void copyPeer(void* to, Device& toDevice, const void* from, Device& fromDevice,
                std::size_t bytes);
  void zero(void* to, std::size_t bytes);
  /// Later work on this stream waits for the event, possibly of another device.
  void wait(const Event&);
  /// Blocks this thread; long waits sleep. Throws the device's error.
  void synchronize();
  /// Whether all work is done. Throws the device's error.
  bool done();

 private:
  Device& device_;
  StreamHandle handle_ = nullptr;
};

class Event {
 public:
  /// timed: for secondsSince; recording untimed events costs less.
  Event(Device&, bool timed);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle handle() const { return handle_; }
  void record(Stream&);
  bool done() const;
  void synchronize() const;
  /// Device seconds since `earlier`; both events are done and belong to one device.
  double secondsSince(const Event& earlier) const;

 private:
  Device& device_;
  EventHandle handle_ = nullptr;
};

/// How long to pause before polling a GPU again, after waiting for `waited`; 0: only yield. The
/// driver's blocking wait is no better: in a virtual machine its interrupt was 0.5 ms late.
std::chrono::nanoseconds pauseAfter(std::chrono::nanoseconds waited);

/// Makes this thread's short sleeps precise; by default the kernel adds up to 50 us.
void wakePrecisely();

/// Polls done(), with sleeps in between, so no core burns for long. Calls `troubled` now and then,
/// which throws to end the wait; throws Error(timeout) naming `what` after the deadline.
/// Stream::synchronize and Event::synchronize cannot watch anything else.
void await(const std::function<bool()>& done, Deadline deadline, const char* what,
           const std::function<void()>& troubled = {});

}  // namespace gradlink::cuda
