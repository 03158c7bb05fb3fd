#include "cuda/memory.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/error.h"

namespace gradlink::cuda {
namespace {

constexpr unsigned kHostPortable = 1;
constexpr unsigned kHostMapped = 2;

}  // namespace

DeviceMemory::DeviceMemory(Device& device, std::size_t bytes) : device_(&device), bytes_(bytes) {
  if (bytes == 0) return;
  const Driver& driver = Driver::get();
  device.makeCurrent();
  Address address = 0;
  const Status status = driver.memAlloc(&address, bytes);
  if (status != kSuccess) {
    std::string doing = "cannot allocate " + std::to_string(bytes) + " bytes on " + device.label();
    std::size_t free = 0;
    std::size_t total = 0;
    if (status == kOutOfMemory && driver.memInfo(&free, &total) == kSuccess) {
      doing +=
          ", which has " + std::to_string(free) + " of " + std::to_string(total) + " bytes free";
    }
    check(status, doing);
  }
  data_ = reinterpret_cast<void*>(address);
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  // A destructor cannot throw: what fails here is a context that is broken or a driver that has
  // gone, and both have freed the memory.
  const Driver& driver = Driver::get();
  if (driver.setCurrent(device_->context()) == kSuccess) driver.memFree(addressOf(data_));
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  Device::any().makeCurrent();
  const Status status = Driver::get().hostAlloc(&data_, bytes, kHostPortable | kHostMapped);
  if (status != kSuccess) {
    data_ = nullptr;
    check(status, "cannot allocate " + std::to_string(bytes) + " bytes of page-locked host memory");
  }
  std::fill_n(static_cast<std::byte*>(data_), bytes, std::byte());
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  const Driver& driver = Driver::get();
  // A thread that has worked on no GPU has no context, and without one nothing is freed.
  ContextHandle current = nullptr;
  if (driver.getCurrent(&current) == kSuccess && current == nullptr) {
    try {
      Device::any().makeCurrent();
    } catch (const Error&) {
      return;  // no GPU works any more
    }
  }
  driver.hostFree(data_);
}

}  // namespace gradlink::cuda
