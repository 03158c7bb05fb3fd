// Memory that neighbours write and read without the owner's help: one-sided averaging.
//
// Each rank of a window has its own array, and for each of its sources a buffer that only this
// source and the rank itself use. Sources are those whose `destinations` name the rank.
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
  /// What the array, and unless zeroInit the buffers too, hold at first.
  const void* initial = nullptr;
  bool zeroInit = false;
  /// Where arrays are on GPUs: the device memory that becomes the array, kept as long as the window
  /// needs it. Null where they are in the memory of the host.
  std::shared_ptr<void> array;
  /// Who writes here; a buffer each, in this order.
  std::vector<int> sources;
  /// Where this rank writes; each names it as a source.
  std::vector<int> destinations;
};

/// One rank's side. Calls block for as long as they move data, and for locks until the deadline
/// (timeout naming the peer); they need nothing of the peer but its memory. Weights other than 1
/// need a float type. Beside the arrays every rank has a number p, 1 at first (0 in the buffers),
/// that goes through the same sums when `withP` is set.
class Window {
 public:
  /// No rank: the caller has the lock.
  static constexpr int kLocked = -1;

  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// The rank's array: `count` elements, as long as this object lives.
  virtual void* data() = 0;
  /// Where the source's array lies in this process's memory, for who reads it while nobody writes
  /// it; null where it is out of reach: on another host, or on a GPU.
  virtual const void* seen(int /*source*/) { return nullptr; }

  /// The destination's buffer for this rank becomes weight * values (accumulate: grows by it), one
  /// after the other; put counts its version up. Then values *= selfWeight, p too.
  virtual void put(void* values, std::span<const Neighbor> destinations, double selfWeight,
                   bool accumulate, bool withP, Deadline) = 0;
  /// The buffer of each source becomes weight * (the source's array as it is now); its version
  /// counts up.
  virtual void get(std::span<const Neighbor> sources, bool withP, Deadline) = 0;
  /// out = (selfWeight * array + sum of weight * buffer) / divisor; out null: the array, and then p
  /// too. Versions of the named sources become 0, with `reset` their buffers and p's too.
  virtual void update(void* out, double selfWeight, std::span<const Neighbor> sources,
                      std::size_t divisor, bool reset, bool withP, Deadline) = 0;
  /// Unread writes of each source, in their order.
  virtual std::vector<std::uint64_t> versions() = 0;
  virtual double p() = 0;

  /// One advisory lock per (owner, rank) pair. Throws peerLost where the rank that
  /// has it was lost.
  /// @returns kLocked, or the rank that has it
  virtual int tryLock(int owner, int other) = 0;
  virtual void unlock(int owner, int other) = 0;

  /// Collective; no rank may use it afterwards. Memory goes with the object.
  virtual void free(const CallOptions&) = 0;

 protected:
  Window() = default;
};

}  // namespace gradlink
