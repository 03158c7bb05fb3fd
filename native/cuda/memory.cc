#include "cuda/memory.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/error.h"
#include "cuda/abi_numbers.h"
#include "cuda/put_off.h"

namespace gradlink::cuda {
namespace {

Status allocate(Address& address, std::size_t bytes) {
  const Allocating now;
  return Driver::get().memAlloc(&address, bytes);
}

}  // namespace

DeviceMemory::DeviceMemory(Device& device, std::size_t bytes) : device_(&device), bytes_(bytes) {
  if (bytes == 0) return;
  const Driver& driver = Driver::get();
  device.makeCurrent();
  Address address = 0;
  Status status = allocate(address, bytes);
  if (status == kOutOfMemory && freeWhatWasPutOff()) {
    device.makeCurrent();
    status = allocate(address, bytes);
  }
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
  freeOrPutOff(device_->context(), data_, bytes_,
               [](void* memory) { Driver::get().memFree(addressOf(memory)); });
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  Device::any().makeCurrent();
  const Allocating now;
  const Status status = Driver::get().hostAlloc(&data_, bytes, kHostPortable | kHostMapped);
  if (status != kSuccess) {
    data_ = nullptr;
    check(status, "cannot allocate " + std::to_string(bytes) + " bytes of page-locked host memory");
  }
  std::fill_n(static_cast<std::byte*>(data_), bytes, std::byte());
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  freeOrPutOff(nullptr, data_, bytes_, [](void* memory) {
    try {
      Device::any().makeCurrent();
    } catch (const Error&) {
      // Then the driver says so, and has no memory any more.
    }
    Driver::get().hostFree(memory);
  });
}

}  // namespace gradlink::cuda
