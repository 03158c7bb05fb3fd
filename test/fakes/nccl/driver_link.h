// The fake driver's functions, as the fake library finds them: at run time, in the library that the
// process uses.
#pragma once

#include "cuda/control.h"

namespace gradlink::fake {

struct DriverLink {
  decltype(&cuLaunchHostFunc) launchHostFunc = nullptr;
  decltype(&gradlinkFakeOwner) owner = nullptr;
  decltype(&gradlinkFakeNow) now = nullptr;
  decltype(&gradlinkFakeAdvanceTo) advanceTo = nullptr;
  decltype(&gradlinkFakeDeviceOf) deviceOf = nullptr;
  decltype(&gradlinkFakeCurrentDevice) currentDevice = nullptr;
  decltype(&gradlinkFakeIsCapturing) isCapturing = nullptr;
  decltype(&gradlinkFakeMap) map = nullptr;
  decltype(&gradlinkFakeFreeing) freeing = nullptr;
  cuda::Status (*memAlloc)(cuda::Address*, std::size_t) = nullptr;
  cuda::Status (*memFree)(cuda::Address) = nullptr;

  /// Null without the fake driver.
  static const DriverLink* get();
};

}  // namespace gradlink::fake
