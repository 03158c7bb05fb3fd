#include "cuda/device.h"

#include <set>
#include <thread>

#include "cuda/info.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

using CudaDeviceOnFakes = FreshFakes;

TEST(CudaDevice, AnOrdinalHasOneDeviceWithOneContext) {
  std::set<ContextHandle> contexts;
  for (Device* device : allDevices()) {
    EXPECT_EQ(&Device::get(device->ordinal()), device);
    EXPECT_TRUE(device->canReach(*device));
    EXPECT_TRUE(device->enablePeer(*device));
    EXPECT_FALSE(device->disablePeer(*device));
    EXPECT_GT(device->multiprocessors(), 0);
    EXPECT_EQ(device->label().rfind("gpu:" + std::to_string(device->ordinal()) + " (", 0), 0u)
        << device->label();
    contexts.insert(device->context());
  }
  EXPECT_EQ(contexts.size(), static_cast<std::size_t>(Device::count()));
  EXPECT_EQ(contexts.count(nullptr), 0u);
}

TEST(CudaDevice, IsTheSameForAllThreads) {
  std::vector<Device*> seen(8);
  std::vector<std::thread> threads;
  for (Device*& slot : seen) threads.emplace_back([&slot] { slot = &Device::get(0); });
  for (std::thread& thread : threads) thread.join();
  for (Device* device : seen) EXPECT_EQ(device, &Device::get(0));
}

TEST(CudaDevice, AnOrdinalThatIsNotThereIsAnErrorThatSaysHowManyThereAre) {
  for (const int ordinal : {-1, Device::count(), 1000}) {
    const std::string message =
        messageOf(ErrorCode::invalidArgument, [ordinal] { Device::get(ordinal); });
    EXPECT_NE(message.find("no gpu:" + std::to_string(ordinal)), std::string::npos) << message;
    EXPECT_NE(message.find(Device::count() == 1
                               ? "one GPU, gpu:0"
                               : std::to_string(Device::count()) +
                                     " GPUs, gpu:0 to gpu:" + std::to_string(Device::count() - 1)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("CUDA_VISIBLE_DEVICES is "), std::string::npos) << message;
  }
}

TEST_F(CudaDeviceOnFakes, AContextIsMadeForWhatRunsAndRefusedByTheGpuThatCannot) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "retain=214@0,retain=2@1,prohibited=2"}}, [] {
    for (Device* device : allDevices()) gpuInfo(device->ordinal());
    const ErrorCode codes[] = {ErrorCode::system, ErrorCode::outOfMemory,
                               ErrorCode::backendUnavailable};
    for (int gpu = 0; gpu < 3; ++gpu) {
      const auto use = [gpu] { Device::get(gpu).makeCurrent(); };
      const std::string message = messageOf(codes[gpu], use);
      EXPECT_NE(message.find(Device::get(gpu).label()), std::string::npos) << message;
      // What belongs to no GPU in particular needs some context, and takes
      // one that is.
      if (gpu == 0) Device::get(3).makeCurrent();
      std::thread([] { EXPECT_EQ(&Device::any(), &Device::get(3)); }).join();
    }
  });
}

TEST(CudaDevice, MakeCurrentIsForThisThread) {
  for (Device* device : allDevices()) {
    device->makeCurrent();
    ContextHandle current = nullptr;
    check(Driver::get().getCurrent(&current), "asking");
    EXPECT_EQ(current, device->context());
    EXPECT_EQ(&Device::any(), device);
    std::thread([&] {
      ContextHandle other = nullptr;
      check(Driver::get().getCurrent(&other), "asking");
      EXPECT_EQ(other, nullptr);
    }).join();
  }
}

TEST(CudaDevice, PeerAccessIsEnabledOnceAndDisabledOnce) {
  for (Device* from : allDevices()) {
    for (Device* to : allDevices()) {
      if (from == to || !from->canReach(*to)) continue;
      EXPECT_TRUE(from->enablePeer(*to));
      EXPECT_TRUE(from->enablePeer(*to));
      EXPECT_TRUE(from->disablePeer(*to));
      EXPECT_FALSE(from->disablePeer(*to));
      // That another library has enabled is taken as it is.
      from->makeCurrent();
      ASSERT_EQ(Driver::get().enablePeerAccess(to->context(), 0), kSuccess);
      EXPECT_TRUE(from->enablePeer(*to));
      EXPECT_TRUE(from->disablePeer(*to));
    }
  }
}

TEST_F(CudaDeviceOnFakes, WithoutPeersNothingIsEnabled) {
  expectFine({{"GRADLINK_FAKE_GPUS", "2"}, {"GRADLINK_FAKE_PEERS", "none"}}, [] {
    Device& a = Device::get(0);
    Device& b = Device::get(1);
    EXPECT_FALSE(a.canReach(b));
    EXPECT_FALSE(a.enablePeer(b));
    EXPECT_FALSE(a.disablePeer(b));
    EXPECT_FALSE(gpuPeer(0, 1).access);
    EXPECT_FALSE(gpuPeer(0, 1).performanceRank);
  });
}

TEST_F(CudaDeviceOnFakes, APeerForWhichThereIsNoRoomIsNotEnabled) {
  expectFine({{"GRADLINK_FAKE_GPUS", "3"}, {"GRADLINK_FAKE_FAULTS", "peer-limit=1"}}, [] {
    Device& device = Device::get(0);
    EXPECT_TRUE(device.enablePeer(Device::get(1)));
    EXPECT_FALSE(device.enablePeer(Device::get(2)));
    EXPECT_TRUE(device.disablePeer(Device::get(1)));
    EXPECT_TRUE(device.enablePeer(Device::get(2)));
  });
}

}  // namespace
}  // namespace gradlink::cuda
