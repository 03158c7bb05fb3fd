// Windows whose arrays are on a GPU: core/windows/memory.h with the sums on the device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/windows/memory.h"
#include "core/windows/wire_windows.h"
#include "cuda/device.h"

namespace gradlink::cuda {

/// The spec's `initial` and `array` are memory of this device. Messages are copied from and to it.
/// Floats use cuda::weightedSum with the divisor in the weights; the host averages integers.
std::unique_ptr<WindowMemory> makeWindowMemory(Device&, const WindowSpec&, int size);

/// As WireWindows::open, for arrays on this device. Throws invalidArgument without spec.array.
std::unique_ptr<Window> openWindow(WireWindows&, Communicator&, Device&, const WindowSpec&,
                                   const CallOptions&);
/// The same for ranks with a device each.
std::vector<std::unique_ptr<Window>> openWindows(WireWindows&, Communicator&, const WindowRanks&,
                                                 std::span<Device* const>,
                                                 std::span<const WindowSpec>, const CallOptions&);

}  // namespace gradlink::cuda
