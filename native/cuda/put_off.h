// What keeps the driver's waits away from launches over several GPUs of this process.
//
// Giving memory back, and asking for some, may wait for all work of its GPU and of those that can
// reach it. Between the first and the last launch of a collective that is a deadlock: the kernels
// that run wait for those that are still to be launched, and the launches for the driver, which
// waits for the kernels.
#pragma once

#include <cstddef>

#include "core/deadline.h"
#include "cuda/driver.h"

namespace gradlink::cuda {

/// While any of these lives, memory of this process that is given back stays allocated. The last to
/// go frees it. Where much has come together, new ones wait a while for those that live to go.
class FreesPutOff {
 public:
  /// Waits for frees that are under way; at the deadline it goes on without.
  explicit FreesPutOff(const Deadline&);
  ~FreesPutOff();
  FreesPutOff(const FreesPutOff&) = delete;
  FreesPutOff& operator=(const FreesPutOff&) = delete;
};

/// While any of these lives, other threads' allocations wait: for the time of launching alone.
class Launching {
 public:
  explicit Launching(const Deadline&);
  ~Launching();
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;
};

/// An allocation: waits for others' launches, and they for its end.
class Allocating {
 public:
  Allocating();
  ~Allocating();
  Allocating(const Allocating&) = delete;
  Allocating& operator=(const Allocating&) = delete;
};

/// How one kind of memory is given back.
using Free = void (*)(void* memory);

/// Frees memory, with this context current unless it is null; now or later.
void freeOrPutOff(ContextHandle context, void* memory, std::size_t bytes, Free free) noexcept;

/// Where memory has run out: frees what was put off once nobody else needs that, or after a while
/// nothing.
/// @returns whether anything was freed
bool freeWhatWasPutOff() noexcept;

}  // namespace gradlink::cuda
