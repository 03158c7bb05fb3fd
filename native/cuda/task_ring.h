// Where task lists are written, and how they are copied to the device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/kernels.h"

namespace gradlink::cuda {

/// A list in the making: `host` will be copied to `device`.
struct TaskList {
  std::byte* host;
  std::byte* device;
  std::size_t bytes;
};

struct TaskRing::Impl {
  explicit Impl(Stream& stream);

  /// Memory for a list, 16-byte aligned. Call after the launch of everything that uses the previous
  /// list. Waits for the stream if the ring is full.
  TaskList reserve(std::size_t bytes);
  /// Queues the copy to the device; later launches find the list there.
  void send(const TaskList& list);
  /// Device memory passed between the launches of one call; reused by the next call.
  void* scratch(std::size_t bytes);
  void synchronize();

  Stream& stream;

 private:
  /// The ring is reused part by part: one event says that a whole part is free.
  struct Part {
    explicit Part(Device& device) : passed(device, false) {}
    Event passed;
    /// Whether it has lists that the stream may not have passed.
    bool used = false;
  };

  std::size_t partBytes() const;
  void nextPart();
  void grow(std::size_t bytes);

  /// Lists are copied beside the stream's work: a launch waits for its own list only.
  Stream lists_;
  Event sent_;
  PinnedMemory host_;
  DeviceMemory device_;
  DeviceMemory scratch_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::size_t part_ = 0;
  std::size_t next_ = 0;  // in part_
};

/// Fills a list from its start: one array of values after another.
class ListWriter {
 public:
  explicit ListWriter(const TaskList& list) : list_(list) {}

  /// Room for `count` values; `at` receives their address on the device.
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
