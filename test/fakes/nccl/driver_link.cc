#include "nccl/driver_link.h"

#include <dlfcn.h>

#include <cstdlib>

namespace gradlink::fake {
namespace {

template <class Function>
bool bind(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

const DriverLink* load() {
  const char* named = std::getenv("GRADLINK_CUDA_LIBRARY");
  void* library = dlopen(named != nullptr && named[0] != '\0' ? named : "libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return nullptr;
  static DriverLink link;
  const bool complete = bind(library, link.launchHostFunc, "cuLaunchHostFunc") &&
                        bind(library, link.owner, "gradlinkFakeOwner") &&
                        bind(library, link.now, "gradlinkFakeNow") &&
                        bind(library, link.advanceTo, "gradlinkFakeAdvanceTo") &&
                        bind(library, link.deviceOf, "gradlinkFakeDeviceOf") &&
                        bind(library, link.currentDevice, "gradlinkFakeCurrentDevice") &&
                        bind(library, link.isCapturing, "gradlinkFakeIsCapturing") &&
                        bind(library, link.map, "gradlinkFakeMap") &&
                        bind(library, link.freeing, "gradlinkFakeFreeing") &&
                        bind(library, link.memAlloc, "cuMemAlloc_v2") &&
                        bind(library, link.memFree, "cuMemFree_v2");
  return complete ? &link : nullptr;
}

}  // namespace

const DriverLink* DriverLink::get() {
  static const DriverLink* link = load();
  return link;
}

}  // namespace gradlink::fake
