// Keeps the driver's implicit waits out of launches over several GPUs of this process, and orders
// these launches.
//
// Allocating and freeing may wait for all work of a GPU and its peers. Between the first and the
// last launch of a collective that is a deadlock: running kernels wait for those not yet launched,
// whose launches wait for the driver, which waits for the kernels. The same happens if two
// collectives reach two GPUs in different orders.
#pragma once

#include <cstddef>
#include <functional>

#include "core/deadline.h"
#include "cuda/device.h"

namespace gradlink::cuda {

/// While one lives, no other thread launches over several GPUs or allocates, except after waiting a
/// second. A thread may hold several. It waits for allocations that have begun.
class Launching {
 public:
  /// Waits for its turn, as await() does. `alone`: other threads or processes launch on some of the
  /// GPUs. They wait for each other and cannot take turns: this only keeps memory from being freed,
  /// and does not wait for allocations beside such launches.
  Launching(bool alone, Deadline, const char* op, const std::function<void()>& look = {});
  ~Launching();
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;

 private:
  const bool alone_;
};

/// While one lives, other threads wait up to a second before they allocate. For launches only.
class NoAllocations {
 public:
  NoAllocations();
  ~NoAllocations();
  NoAllocations(const NoAllocations&) = delete;
  NoAllocations& operator=(const NoAllocations&) = delete;
};

/// While any lives, freed memory is kept for reuse. The last one returns all of it to the driver.
class KeepMemory {
 public:
  KeepMemory();
  ~KeepMemory();
  KeepMemory(const KeepMemory&) = delete;
  KeepMemory& operator=(const KeepMemory&) = delete;
};

/// A source of memory of one kind. A device's context is current in both calls; the host has none.
struct MemorySource {
  Device* device;
  Status (*allocate)(void** memory, std::size_t bytes);
  void (*free)(void* memory);

  bool operator==(const MemorySource&) const = default;
};

/// Returns kept or new memory. The memory kept and in use never exceeds the peak in use: before a
/// new allocation, the excess is freed; if the driver has none left, all kept memory of the device.
/// `fresh`: always new, if its location matters.
Status takeMemory(const MemorySource&, std::size_t bytes, void** memory, bool fresh = false);
/// No queued work may still use it.
void giveMemoryBack(const MemorySource&, std::size_t bytes, void* memory) noexcept;

}  // namespace gradlink::cuda
