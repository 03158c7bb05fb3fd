// How much simulated time work takes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "cuda/context.h"

namespace gradlink::fake {

/// No copy and no kernel takes less, however little it does.
inline constexpr double kShortestCopy = 1e-6;
inline constexpr double kShortestKernel = 2e-6;

/// Between places (see memory.h). Pageable memory is slower than page-locked.
double copySeconds(int from, int to, std::size_t bytes);
/// Of one direction, with the peer access that is enabled now.
double linkRate(int from, int to);

/// What a kernel reads and writes: all links work at once, so the slowest says how long it takes.
class Traffic {
 public:
  explicit Traffic(Context& context) : context_(context) {}
  /// False where the kernel's GPU does not reach all of it, which fails the kernel.
  bool read(const void* from, std::size_t bytes) { return add(from, bytes, false); }
  bool write(const void* to, std::size_t bytes) { return add(to, bytes, true); }
  /// Reads a list, to be looked at; empty where it is not reached.
  template <class T>
  std::span<T> list(T* from, std::size_t count) {
    return read(from, count * sizeof(T)) ? std::span<T>(from, count) : std::span<T>();
  }
  /// kIllegalAddress where something was not reached.
  Status status() const { return status_; }
  double seconds() const;

 private:
  bool add(const void* address, std::size_t bytes, bool writes);

  Context& context_;
  Status status_ = kOk;
  std::map<std::pair<int, int>, std::size_t> bytes_;  // by (from, to)
};

}  // namespace gradlink::fake
