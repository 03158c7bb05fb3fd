// Memory on a GPU, and page-locked host memory that GPUs access at full speed.
#pragma once

#include <cstddef>
#include <utility>

#include "cuda/device.h"

namespace gradlink::cuda {

/// At least 256-byte aligned, not zeroed. Zero bytes are a null pointer.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws Error(outOfMemory) with the device and the bytes requested and free.
  DeviceMemory(Device& device, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device* device() const { return device_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Page-locked, mapped into all contexts; it holds whatever was there.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// `fresh`: newly allocated on the thread's NUMA node, not reused.
  explicit PinnedMemory(std::size_t bytes, bool fresh = false);
  static PinnedMemory zeroed(std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gradlink::cuda
