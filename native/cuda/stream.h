// Work queues of a GPU and the marks between which time is taken.
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

/// Does not synchronise with the default stream. Used by one thread at a time.
class Stream {
 public:
  explicit Stream(Device&);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  StreamHandle handle() const { return handle_; }

  /// Any two places: host (pinned memory for speed) and devices that reach each other; devices that
  /// do not are staged by the driver.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Between devices, whether they reach each other or not.
  void copyPeer(void* to, Device& toDevice, const void* from, Device& fromDevice,
                std::size_t bytes);
  void zero(void* to, std::size_t bytes);
  /// What follows here waits for the event; the event may be of another device.
  void wait(const Event&);
  /// Blocks this thread, which sleeps where it takes long. Throws what the device failed with.
  void synchronize();
  /// True when all is done. Throws what the device failed with.
  bool done();

 private:
  Device& device_;
  StreamHandle handle_ = nullptr;
};

class Event {
 public:
  /// timed: for secondsSince; without, recording costs less.
  Event(Device&, bool timed);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle handle() const { return handle_; }
  void record(Stream&);
  bool done() const;
  void synchronize() const;
  /// Device seconds from `earlier` to this; both recorded on streams of one device, both done.
  double secondsSince(const Event& earlier) const;

 private:
  Device& device_;
  EventHandle handle_ = nullptr;
};

/// How long to pause before a GPU is asked again, after so long a wait; zero: not at all, others
/// may run meanwhile. A driver's own blocking wait is no better: in a virtual machine its interrupt
/// came half a millisecond late.
std::chrono::nanoseconds pauseAfter(std::chrono::nanoseconds waited);

/// Makes this thread's short sleeps as short as they are asked for; else the kernel adds up to 50
/// us to each.
void wakePrecisely();

/// Waits until done() is true, with something else to watch meanwhile (else Stream::synchronize and
/// Event::synchronize sleep until the very end): polls, then sleeps between polls, so that no core
/// burns for long.
/// Calls `troubled` now and then, which throws to end the wait; throws Error(timeout) naming `what`
/// after the deadline.
void await(const std::function<bool()>& done, Deadline deadline, const char* what,
           const std::function<void()>& troubled = {});

}  // namespace gradlink::cuda
