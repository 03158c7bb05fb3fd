// One-sided averaging: memory that neighbors access without the owner's help.
//
// Each rank of a window has an array, and for each of its sources a buffer that only that source
// and the rank itself use. The sources are the ranks whose `destinations` name this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "core/deadline.h"
#include "core/kernels/dtype.h"

namespace gradlink {

struct WindowSpec {
  std::size_t count = 0;
  DType dtype = DType::float32;
  /// The initial array, also of the buffers unless zeroInit.
  const void* initial = nullptr;
  bool zeroInit = false;
  /// For arrays on GPUs: the device memory of the array, kept by the window. Null for host memory.
  std::shared_ptr<void> array;
  /// The ranks that write here, one buffer each, in this order.
  std::vector<int> sources;
  /// The ranks that this one writes to; each names it as a source.
  std::vector<int> destinations;
};

/// One rank's side. Calls block while they move data, and for a lock until the deadline (the
/// timeout names the peer). They only need the peer's memory. Weights other than 1 need a float
/// type. With `withP` a scalar p of each array, initially 1 (buffers: 0), goes through the same
/// sums.
class Window {
 public:
  /// The caller has the lock.
  static constexpr int kLocked = -1;

  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  virtual void* data() = 0;
  /// The source's array as mapped here, to be read while nobody writes it; null if unreachable.
  virtual const void* seen(int /*source*/) { return nullptr; }

  /// Sets the destination's buffer for this rank to weight * values (accumulate: adds it) and
  /// increments its version. Then values *= selfWeight, p too.
  virtual void put(void* values, std::span<const Neighbor> destinations, double selfWeight,
                   bool accumulate, bool withP, Deadline) = 0;
  /// Sets each source's buffer to weight * (the source's current array) and increments its version.
  virtual void get(std::span<const Neighbor> sources, bool withP, Deadline) = 0;
  /// out = (selfWeight * array + sum of weight * buffer) / divisor; null out: the array itself, and
  /// p too. Resets the versions of the named sources, with `reset` their buffers and p's too.
  virtual void update(void* out, double selfWeight, std::span<const Neighbor> sources,
                      std::size_t divisor, bool reset, bool withP, Deadline) = 0;
  /// Unread writes of each source.
  virtual std::vector<std::uint64_t> versions() = 0;
  virtual double p() = 0;

  /// One advisory lock per (owner, rank) pair. Throws peerLost if the rank that holds it was lost.
  /// @returns kLocked, or the rank that holds it
  virtual int tryLock(int owner, int other) = 0;
  virtual void unlock(int owner, int other) = 0;

  /// Collective; no rank may use the window afterwards. The memory is freed with the object.
  virtual void free(const CallOptions&) = 0;

 protected:
  Window() = default;
};

}  // namespace gradlink
