// What keeps the driver's waits away from launches over several GPUs of this process, and these
// launches in one order.
//
// Giving memory back, and asking for some, may wait for all work of its GPU and of those that can
// reach it. Between the first and the last launch of a collective that is a deadlock: the kernels
// that run wait for those that are still to be launched, and the launches for the driver, which
// waits for the kernels. So is it where two collectives come to two GPUs in different orders, and
// each GPU lets the second wait for the first.
#pragma once

#include <cstddef>
#include <functional>

#include "core/deadline.h"
#include "cuda/device.h"

namespace gradlink::cuda {

/// While one lives, no other thread launches over several GPUs, and nobody asks the driver for
/// memory, or only who has waited a second. A thread may have several. It waits for who asks the
/// driver already.
class Launching {
 public:
  /// Waits for its turn, as await() does. `alone`: others, in other threads or processes, launch on
  /// some of the GPUs. They wait for one another, so they cannot take turns: then it only keeps
  /// memory from being given back to the driver. Nor does it wait for who asks beside such
  /// launches.
  Launching(bool alone, Deadline, const char* op, const std::function<void()>& look = {});
  ~Launching();
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;

 private:
  const bool alone_;
};

/// While one lives, others wait up to a second before they ask the driver for memory: for the time
/// of launching alone.
class NoAllocations {
 public:
  NoAllocations();
  ~NoAllocations();
  NoAllocations(const NoAllocations&) = delete;
  NoAllocations& operator=(const NoAllocations&) = delete;
};

/// While any lives, memory that is given back is kept for whoever needs as much. The last to go
/// gives all of it to the driver.
class KeepMemory {
 public:
  KeepMemory();
  ~KeepMemory();
  KeepMemory(const KeepMemory&) = delete;
  KeepMemory& operator=(const KeepMemory&) = delete;
};

/// Where memory of one kind comes from. It is allocated, and freed, with the device current; of the
/// host's there is none.
struct MemorySource {
  Device* device;
  Status (*allocate)(void** memory, std::size_t bytes);
  void (*free)(void* memory);

  bool operator==(const MemorySource&) const = default;
};

/// What was given back, or new memory. What is kept and in use is never more than what was in use
/// at once: before new memory is asked for, the rest goes back to the driver, and where there is
/// none, all that is kept of the device. `fresh`: new in any case, for who cares where it lies.
Status takeMemory(const MemorySource&, std::size_t bytes, void** memory, bool fresh = false);
/// Nothing that was queued may use it any more.
void giveMemoryBack(const MemorySource&, std::size_t bytes, void* memory) noexcept;

}  // namespace gradlink::cuda
