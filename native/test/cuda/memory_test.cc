#include "cuda/memory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cuda/info.h"
#include "cuda/stream.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

using testing::ExitedWithCode;

TEST(CudaMemory, IsAlignedAndKnowsItsDevice) {
  for (Device* device : allDevices()) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{255}, std::size_t{1} << 20}) {
      const DeviceMemory memory(*device, bytes);
      ASSERT_NE(memory.data(), nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
      EXPECT_EQ(memory.bytes(), bytes);
      EXPECT_EQ(memory.device(), device);
    }
  }
}

TEST(CudaMemory, NothingIsANullPointer) {
  const DeviceMemory memory(Device::get(0), 0);
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_EQ(memory.device(), &Device::get(0));
  EXPECT_EQ(DeviceMemory().device(), nullptr);
  EXPECT_EQ(PinnedMemory(0).data(), nullptr);
}

TEST(CudaMemory, MovesWithItsOwnership) {
  DeviceMemory first(Device::get(0), 1000);
  void* const data = first.data();
  DeviceMemory second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
  DeviceMemory third(Device::get(0), 2000);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), 1000u);
  PinnedMemory pinned(64);
  void* const host = pinned.data();
  PinnedMemory moved(std::move(pinned));
  EXPECT_EQ(moved.data(), host);
  EXPECT_EQ(pinned.data(), nullptr);
}

TEST(CudaMemory, MoreThanThereIsNamesTheDeviceAndWhatIsFree) {
  Device& device = Device::get(0);
  const std::size_t bytes = std::size_t{1} << 50;
  const std::string message =
      messageOf(ErrorCode::outOfMemory, [&] { DeviceMemory memory(device, bytes); });
  EXPECT_EQ(test::lacking(message, {std::to_string(bytes) + " bytes", device.label(),
                                    " of " + std::to_string(gpuInfo(0).memoryBytes),
                                    "bytes free: CUDA_ERROR_OUT_OF_MEMORY"}),
            "")
      << message;
  // What failed left nothing behind.
  EXPECT_NE(DeviceMemory(device, 1000).data(), nullptr);
}

TEST(CudaMemory, PinnedMemoryIsZeroedAndReachedByAllDevices) {
  constexpr std::size_t kBytes = 100'003;
  // Leaves its bytes to whoever gets the same place next.
  std::memset(PinnedMemory(kBytes).data(), 0xff, kBytes);
  const PinnedMemory pinned(kBytes);
  auto* const bytes = static_cast<unsigned char*>(pinned.data());
  EXPECT_EQ(std::count(bytes, bytes + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
  for (Device* device : allDevices()) {
    std::fill_n(bytes, kBytes, static_cast<unsigned char>(7 + device->ordinal()));
    const DeviceMemory memory(*device, kBytes);
    Stream stream(*device);
    stream.copy(memory.data(), bytes, kBytes);
    stream.synchronize();
    std::fill_n(bytes, kBytes, 0);
    stream.copy(bytes, memory.data(), kBytes);
    stream.synchronize();
    EXPECT_EQ(std::count(bytes, bytes + kBytes, 7 + device->ordinal()),
              static_cast<std::ptrdiff_t>(kBytes));
  }
}

TEST(CudaMemory, PinnedMemoryThatCannotBeHadIsAnError) {
  constexpr std::size_t kBytes = std::size_t{1} << 50;
  const std::string message =
      messageOf(ErrorCode::outOfMemory, [] { PinnedMemory memory(kBytes); });
  EXPECT_EQ(test::lacking(message, {std::to_string(kBytes) + " bytes", "page-locked",
                                    "CUDA_ERROR_OUT_OF_MEMORY"}),
            "")
      << message;
}

using CudaMemoryDeathTest = FreshProcesses;

/// What the stand-in's driver says is left after `body`, in a process of its own; one line each.
template <class Body>
std::string leftBy(const Body& body) {
  // The process of its own comes here too, and has another number.
  constexpr const char* kAgreed = "GRADLINK_TEST_LEFT_FILE";
  if (std::getenv(kAgreed) == nullptr) {
    const std::string name = testing::TempDir() + "gradlink-left-" + std::to_string(getpid());
    setenv(kAgreed, name.c_str(), 1);
  }
  const std::string file = std::getenv(kAgreed);
  std::remove(file.c_str());
  [&] { EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_LEAKS", file}}, body), ExitedWithCode(0), ""); }();
  unsetenv(kAgreed);
  std::ifstream report(file);
  EXPECT_TRUE(report) << "no report was written";
  const std::string text{std::istreambuf_iterator<char>(report), {}};
  std::remove(file.c_str());
  return text;
}

TEST_F(CudaMemoryDeathTest, NothingIsLeftWhenItsOwnersAreGone) {
  if (!onFakes()) GTEST_SKIP() << "only the stand-in counts what is left";
  EXPECT_EQ(leftBy([] {
              for (Device* device : allDevices()) {
                const DeviceMemory memory(*device, 4096);
                DeviceMemory other(*device, 8192);
                other = DeviceMemory(*device, 16);
                const PinnedMemory pinned(4096);
                Stream stream(*device);
                Event event(*device, true);
                Event untimed(*device, false);
                stream.copy(memory.data(), pinned.data(), 4096);
                event.record(stream);
                untimed.record(stream);
              }
            }),
            "");
}

TEST_F(CudaMemoryDeathTest, WhatIsKeptIsReported) {
  if (!onFakes()) GTEST_SKIP() << "only the stand-in counts what is left";
  const std::string left = leftBy([] {
    // Still reachable, so that only the stand-in has something to say about them.
    static const DeviceMemory& memory = *new DeviceMemory(Device::get(0), 4096);
    static const Stream& stream = *new Stream(Device::get(0));
    EXPECT_EQ(memory.device(), &stream.device());
  });
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 2) << left;
}

}  // namespace
}  // namespace gradlink::cuda
