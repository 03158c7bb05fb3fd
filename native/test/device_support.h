// What tests of kernels share: arrays that are on a GPU and come back.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cuda/kernels.h"

namespace gradlink::cuda {

/// gpu:0 with a stream and a ring of lists.
struct OneGpu {
  Device& device = Device::get(0);
  Stream stream{device};
  TaskRing ring{stream};
};

/// `count` values that begin `offset` elements after a multiple of 256 bytes, with as many as that
/// before and `kGuard` behind them that must stay as they are.
template <class T>
class DeviceArray {
 public:
  DeviceArray(OneGpu& gpu, const std::vector<T>& values, std::size_t offset = 0)
      : gpu_(gpu), count_(values.size()), offset_(offset), image_(offset + count_ + kGuard) {
    std::memset(image_.data(), kGuardByte, image_.size() * sizeof(T));
    std::copy(values.begin(), values.end(), image_.begin() + static_cast<std::ptrdiff_t>(offset));
    memory_ = DeviceMemory(gpu.device, image_.size() * sizeof(T));
    gpu.stream.copy(memory_.data(), image_.data(), image_.size() * sizeof(T));
    gpu.stream.synchronize();
  }

  T* data() const { return static_cast<T*>(memory_.data()) + offset_; }

  std::vector<T> read() {
    gpu_.stream.copy(image_.data(), memory_.data(), image_.size() * sizeof(T));
    gpu_.stream.synchronize();
    const std::vector<T> guard = filled();
    EXPECT_EQ(std::memcmp(image_.data(), guard.data(), offset_ * sizeof(T)), 0)
        << "written before the array";
    EXPECT_EQ(std::memcmp(image_.data() + offset_ + count_, guard.data(), kGuard * sizeof(T)), 0)
        << "written behind the array";
    const auto begin = image_.begin() + static_cast<std::ptrdiff_t>(offset_);
    return {begin, begin + static_cast<std::ptrdiff_t>(count_)};
  }

 private:
  static constexpr std::size_t kGuard = 40;
  static constexpr int kGuardByte = 0x5a;

  std::vector<T> filled() const {
    std::vector<T> values(std::max(offset_, kGuard));
    std::memset(values.data(), kGuardByte, values.size() * sizeof(T));
    return values;
  }

  OneGpu& gpu_;
  std::size_t count_;
  std::size_t offset_;
  std::vector<T> image_;
  DeviceMemory memory_;
};

template <class T>
bool sameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace gradlink::cuda
