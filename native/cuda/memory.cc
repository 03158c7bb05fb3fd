#include "cuda/memory.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include "core/error.h"
#include "cuda/abi_numbers.h"
#include "cuda/kept_memory.h"

namespace gradlink::cuda {
namespace {

MemorySource sourceOf(Device& device) {
  return {&device,
          [](void** memory, std::size_t bytes) {
            Address address = 0;
            const Status status = Driver::get().memAlloc(&address, bytes);
            *memory = reinterpret_cast<void*>(address);
            return status;
          },
          [](void* memory) { Driver::get().memFree(addressOf(memory)); }};
}

MemorySource pinnedSource() {
  return {nullptr,
          [](void** memory, std::size_t bytes) {
            Device::any().makeCurrent();
            return Driver::get().hostAlloc(memory, bytes, kHostPortable | kHostMapped);
          },
          [](void* memory) {
            try {
              Device::any().makeCurrent();
            } catch (const Error&) {
              // A failure means a broken context, and the memory has gone with it.
            }
            Driver::get().hostFree(memory);
          }};
}

bool hasTensorflow() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/libtensorflow") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

DeviceMemory::DeviceMemory(Device& device, std::size_t bytes) : device_(&device), bytes_(bytes) {
  if (bytes == 0) return;
  const SameContext same;
  const Status status = takeMemory(sourceOf(device), bytes, &data_);
  if (status == kSuccess) return;
  std::string doing = "cannot allocate " + std::to_string(bytes) + " bytes on " + device.label();
  std::size_t free = 0;
  std::size_t total = 0;
  if (status == kOutOfMemory && Driver::get().memInfo(&free, &total) == kSuccess) {
    doing += ", which has " + std::to_string(free) + " of " + std::to_string(total) + " bytes free";
    if (hasTensorflow()) {
      doing +=
          " (TensorFlow, which is in this process, takes all of a GPU's memory at its start unless "
          "TF_FORCE_GPU_ALLOW_GROWTH=true is set before)";
    }
  }
  check(status, doing);
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  const SameContext same;
  giveMemoryBack(sourceOf(*device_), bytes_, data_);
}

PinnedMemory::PinnedMemory(std::size_t bytes, bool fresh) : bytes_(bytes) {
  if (bytes == 0) return;
  const SameContext same;
  check(takeMemory(pinnedSource(), bytes, &data_, fresh),
        "cannot allocate " + std::to_string(bytes) + " bytes of page-locked host memory");
}

PinnedMemory PinnedMemory::zeroed(std::size_t bytes) {
  PinnedMemory memory(bytes);
  std::fill_n(static_cast<std::byte*>(memory.data_), bytes, std::byte());
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  const SameContext same;
  giveMemoryBack(pinnedSource(), bytes_, data_);
}

}  // namespace gradlink::cuda
