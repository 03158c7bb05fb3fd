// Where lists of tasks are written, and how they get to the device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/kernels.h"

namespace gradlink::cuda {

/// A list while it is written: `host` is what `device` will be.
struct TaskList {
  std::byte* host;
  std::byte* device;
  std::size_t bytes;
};

struct TaskRing::Impl {
  explicit Impl(Stream& stream);

  /// Room for a list, 16-byte aligned: after everything that uses the list before was launched.
  /// Waits for the stream where the ring is full.
  TaskList reserve(std::size_t bytes);
  /// Queues the copy to the device; what is launched after it finds the list there.
  void send(const TaskList& list);
  /// Device memory for what one call's launches leave to each other: the next call's use the same.
  void* scratch(std::size_t bytes);
  /// Waits for all of it.
  void synchronize();

  Stream& stream;

 private:
  /// The ring is used part by part: one event tells that a whole part may be used again.
  struct Part {
    explicit Part(Device& device) : passed(device, false) {}
    Event passed;
    /// Whether lists are in it that the stream may not have passed.
    bool used = false;
  };

  std::size_t partBytes() const;
  void nextPart();
  void grow(std::size_t bytes);

  /// Lists travel beside the stream's work: what is launched waits for its list, but no list for
  /// what was launched before it.
  Stream lists_;
  Event sent_;
  PinnedMemory host_;
  DeviceMemory device_;
  DeviceMemory scratch_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::size_t part_ = 0;  // the present one
  std::size_t next_ = 0;  // in it
};

/// Fills a list from its start: arrays of one type after another.
class ListWriter {
 public:
  explicit ListWriter(const TaskList& list) : list_(list) {}

  /// Room for `count` values; `at` gets the address that they will have on the device.
  template <class T>
  std::span<T> take(std::size_t count, T*& at) {
    static_assert(alignof(T) <= 8 && sizeof(T) % 8 == 0, "what follows stays aligned");
    auto* const host = reinterpret_cast<T*>(list_.host + used_);
    at = reinterpret_cast<T*>(list_.device + used_);
    used_ += count * sizeof(T);
    return {host, count};
  }

 private:
  TaskList list_;
  std::size_t used_ = 0;
};

/// Whether a vector of 16 bytes may be loaded there.
inline bool isAligned(const void* memory) { return addressOf(memory) % 16 == 0; }

}  // namespace gradlink::cuda
