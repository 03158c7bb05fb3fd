// One rank's side of a window whose peers cannot reach into its memory: its array and its sources'
// buffers, which a thread changes for them. Each operation on one array is whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/window.h"

namespace gradlink {

/// Safe from any thread.
class WindowMemory {
 public:
  /// `own` has room for the array, becomes the initial values and outlives this. `size`: ranks.
  WindowMemory(const WindowSpec& spec, int size, void* own);

  std::size_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return count_ * sizeOf(dtype_); }
  void* data() const { return own_; }

  /// The source's buffer becomes weight * values, and its version counts up; accumulate: it grows
  /// by that. Its p likewise, by weight * `p`. Throws invalidArgument for who is no source.
  void write(int source, const void* values, double weight, bool accumulate, bool withP, double p);
  /// Copies the array, whole; returns p.
  double read(void* to);
  /// values *= weight, p too: what is left of what was put. `values` may be the array.
  void scale(void* values, double weight, bool withP);
  /// Window::update.
  void update(void* out, double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
              bool reset, bool withP);
  std::vector<std::uint64_t> versions();
  double p();

  /// The program's locks of this rank and each other.
  bool tryLock(int other);
  void unlock(int other);

 private:
  struct Array {
    std::byte* data = nullptr;
    double p = 0;
    std::uint64_t version = 0;
    std::mutex mutex;
  };
  Array& of(int source);

  const std::size_t count_;
  const DType dtype_;
  const std::vector<int> sources_;
  void* const own_;
  std::unique_ptr<std::byte, void (*)(void*)> buffers_;
  /// The rank's own, then one a source.
  std::vector<Array> arrays_;
  std::vector<std::atomic<bool>> locks_;
};

}  // namespace gradlink
