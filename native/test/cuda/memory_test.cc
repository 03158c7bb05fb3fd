#include "cuda/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "cuda/abi_numbers.h"
#include "cuda/info.h"
#include "cuda/kept_memory.h"
#include "cuda/stream.h"
#include "test/cuda/support.h"
#include "test/folder.h"

namespace gradlink::cuda {
namespace {

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

TEST(CudaMemory, MoreThanThereIsNamesTensorflowWhereTheProcessHasIt) {
  const test::TestFolder folder;
  const std::string file = folder.file("libtensorflow.so.2");
  std::ofstream(file) << "mapped";
  const auto isNamed = [] {
    const std::string message = messageOf(ErrorCode::outOfMemory, [] {
      const DeviceMemory memory(Device::get(0), std::size_t{1} << 50);
    });
    return message.find("TF_FORCE_GPU_ALLOW_GROWTH") != std::string::npos;
  };
  EXPECT_FALSE(isNamed());
  const int opened = open(file.c_str(), O_RDONLY);
  void* const mapped = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, opened, 0);
  close(opened);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_TRUE(isNamed());
  munmap(mapped, 1);
}

TEST(CudaMemory, LeavesTheThreadItsContext) {
  const std::vector<Device*> devices = allDevices();
  for (Device* const own : {devices.front(), devices.back()}) {
    own->makeCurrent();
    for (Device* const device : devices) {
      const DeviceMemory memory(*device, 1000);
      const PinnedMemory pinned(1000);
      const Stream stream(*device);
      const Event event(*device, true);
      if (own->canReach(*device)) device->enablePeer(*own);
    }
    EXPECT_THROW(DeviceMemory(*devices.back(), std::size_t{1} << 50), Error);
    ContextHandle current = nullptr;
    check(Driver::get().getCurrent(&current), "asking");
    EXPECT_EQ(current, own->context());
  }
}

TEST(CudaMemory, ZeroedPinnedMemoryIsReachedByAllDevices) {
  const KeepMemory keeping;
  constexpr std::size_t kBytes = 100'003;
  // Leaves its bytes to whoever gets the same place next.
  std::memset(PinnedMemory(kBytes).data(), 0xff, kBytes);
  const PinnedMemory pinned = PinnedMemory::zeroed(kBytes);
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

/// Memory of nobody, so that what is asked of the driver can be counted.
struct Ledger {
  static inline std::size_t given = 0;
  static inline std::size_t most = 0;
  static inline std::size_t room = 0;

  explicit Ledger(std::size_t bytes) { given = most = 0, room = bytes; }
  /// One kind for each test: what was in use at once is remembered.
  template <int kKind>
  static MemorySource source() {
    return {nullptr,
            [](void** memory, std::size_t bytes) {
              static_assert(kKind >= 0);
              if (given + bytes > room) return kOutOfMemory;
              *memory = new std::size_t(bytes);
              given += bytes;
              most = std::max(most, given);
              return kSuccess;
            },
            [](void* memory) {
              given -= *static_cast<std::size_t*>(memory);
              delete static_cast<std::size_t*>(memory);
            }};
  }
};

void* take(const MemorySource& source, std::size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(takeMemory(source, bytes, &memory), kSuccess);
  return memory;
}

TEST(CudaKeptMemory, ServesWhoNeedsAsMuch) {
  // In use at once; what comes below is less.
  DeviceMemory(Device::get(0), 4000);
  const KeepMemory keeping;
  void* const data = DeviceMemory(Device::get(0), 1000).data();
  EXPECT_NE(DeviceMemory(Device::get(0), 1001).data(), data);
  const DeviceMemory again(Device::get(0), 1000);
  EXPECT_EQ(again.data(), data);
}

TEST(CudaKeptMemory, GoesBackWithTheLastThatKeepsIt) {
  const Ledger ledger(100);
  const MemorySource source = Ledger::source<0>();
  giveMemoryBack(source, 10, take(source, 10));
  EXPECT_EQ(Ledger::given, 0u);
  {
    const KeepMemory first;
    {
      const KeepMemory second;
      giveMemoryBack(source, 10, take(source, 10));
    }
    EXPECT_EQ(Ledger::given, 10u);
  }
  EXPECT_EQ(Ledger::given, 0u);
  // How much was in use then counts no more.
  const KeepMemory again;
  giveMemoryBack(source, 3, take(source, 3));
  giveMemoryBack(source, 2, take(source, 2));
  EXPECT_EQ(Ledger::given, 2u);
}

TEST(CudaKeptMemory, IsWithWhatIsInUseNoMoreThanWasInUseAtOnce) {
  const Ledger ledger(1000);
  const MemorySource source = Ledger::source<1>();
  const KeepMemory keeping;
  void* const first = take(source, 10);
  void* const second = take(source, 20);
  giveMemoryBack(source, 10, first);
  giveMemoryBack(source, 20, second);
  // As much was in use at once, however often.
  for (int i = 0; i < 10; ++i) giveMemoryBack(source, 10, take(source, 10));
  EXPECT_EQ(Ledger::given, 30u);
  giveMemoryBack(source, 5, take(source, 5));
  EXPECT_EQ(Ledger::given, 15u) << "the largest alone is freed";
  for (std::size_t bytes = 1; bytes < 30; ++bytes) {
    giveMemoryBack(source, bytes, take(source, bytes));
    EXPECT_LE(Ledger::given, 30u);
  }
  void* const large = take(source, 40);
  EXPECT_EQ(Ledger::most, 40u);
  giveMemoryBack(source, 40, large);
}

TEST(CudaKeptMemory, GoesBackWhereThereIsNoRoom) {
  const Ledger ledger(100);
  const MemorySource source = Ledger::source<2>();
  giveMemoryBack(source, 100, take(source, 100));
  const KeepMemory keeping;
  giveMemoryBack(source, 30, take(source, 30));
  // Somebody else's.
  Ledger::given += 60;
  {
    const Launching launching(false, Deadline::never(), "launch");
    void* memory = nullptr;
    EXPECT_EQ(takeMemory(source, 20, &memory), kOutOfMemory) << "freed in a launch";
  }
  giveMemoryBack(source, 20, take(source, 20));
  EXPECT_EQ(Ledger::given, 80u);
}

/// A driver that gives memory once a launch that was under way has had its other half.
struct WaitingDriver {
  static inline std::atomic<bool> asked;
  static inline std::atomic<bool> launched;

  static MemorySource source() {
    return {nullptr,
            [](void** memory, std::size_t) {
              *memory = &asked;
              asked = true;
              while (!launched) std::this_thread::yield();
              return kSuccess;
            },
            [](void*) {}};
  }
};

TEST(CudaKeptMemory, IsAskedForBesideLaunchesThatAreAlone) {
  WaitingDriver::asked = WaitingDriver::launched = false;
  const Deadline deadline = Deadline::in(10000);
  const Launching first(true, deadline, "the first half");
  std::thread asking([] {
    const MemorySource source = WaitingDriver::source();
    giveMemoryBack(source, 1, take(source, 1));
  });
  while (!WaitingDriver::asked) std::this_thread::yield();
  // A launch of the other kind waits for the driver, and keeps nobody waiting meanwhile.
  std::atomic<bool> waits = false;
  std::atomic<bool> begun = false;
  std::thread other([&] {
    EXPECT_NO_THROW(Launching(false, deadline, "a group", [&] { waits = true; }));
    begun = true;
  });
  while (!waits && !begun) std::this_thread::yield();
  EXPECT_FALSE(begun);
  EXPECT_NO_THROW(Launching(true, deadline, "the second half"));
  WaitingDriver::launched = true;
  asking.join();
  other.join();
}

}  // namespace
}  // namespace gradlink::cuda
