// Streams of the fake driver: that they run beside each other, and are ordered by events alone.
#include <thread>

#include "test/fake/support.h"

namespace gradlink::cuda {
namespace {

TEST(FakeStream, RunsBesideOthers) {
  RawStream one;
  RawStream other;
  RawStream third(Device::count() - 1);
  // Each waits for the next: in any order one after the other, this would stand still.
  std::promise<void> first;
  std::promise<void> second;
  one.run([&] { first.get_future().wait(); });
  other.run([&] {
    second.get_future().wait();
    first.set_value();
  });
  third.run([&] { second.set_value(); });
  EXPECT_EQ(one.synchronize(), kSuccess);
  EXPECT_EQ(other.synchronize(), kSuccess);
  EXPECT_EQ(third.synchronize(), kSuccess);
}

TEST(FakeStream, ReadsPageLockedMemoryWhenItsTurnComes) {
  RawStream stream;
  const RawMemory host(-1, 16);
  const RawMemory device(0, 16);
  const auto release = stream.hold();
  host.bytes()[3] = 1;
  ASSERT_EQ(copy(device, host, 16, stream), kSuccess);
  host.bytes()[3] = 2;
  release();
  ASSERT_EQ(stream.synchronize(), kSuccess);
  EXPECT_EQ(device.bytes()[3], 2);
}

TEST(FakeStream, IsDoneWithPageableMemoryWhenTheCallReturns) {
  RawStream stream;
  const RawMemory device(0, 16);
  unsigned char pageable[16] = {7};
  use(0);
  ASSERT_EQ(driver().copyAsync(device.address(), addressOf(pageable), 16, stream.handle()),
            kSuccess);
  EXPECT_EQ(stream.query(), kSuccess);
  EXPECT_EQ(device.bytes()[0], 7);
}

TEST(FakeStream, WaitsForWhatTheEventStoodForWhenItWasTold) {
  RawStream one;
  RawStream other;
  const RawEvent event;
  ASSERT_EQ(event.record(one), kSuccess);
  ASSERT_EQ(event.holds(other), kSuccess);
  const auto release = one.hold();
  // Recorded anew behind the held work: what waits already does not wait for that.
  ASSERT_EQ(event.record(one), kSuccess);
  EXPECT_EQ(other.synchronize(), kSuccess);
  std::atomic<bool> held{true};
  bool ranTooEarly = false;
  ASSERT_EQ(event.holds(other), kSuccess);
  other.run([&] { ranTooEarly = held.load(); });
  EXPECT_EQ(other.query(), kNotReady);
  EXPECT_EQ(driver().eventQuery(event.handle()), kNotReady);
  held = false;
  release();
  EXPECT_EQ(other.synchronize(), kSuccess);
  EXPECT_FALSE(ranTooEarly);
}

TEST(FakeStream, WaitsForAnEventThatIsGone) {
  RawStream one;
  RawStream other;
  const auto release = one.hold();
  std::atomic<bool> held{true};
  bool ranTooEarly = false;
  {
    const RawEvent event;
    ASSERT_EQ(event.record(one), kSuccess);
    ASSERT_EQ(event.holds(other), kSuccess);
  }
  other.run([&] { ranTooEarly = held.load(); });
  held = false;
  release();
  EXPECT_EQ(other.synchronize(), kSuccess);
  EXPECT_FALSE(ranTooEarly);
}

TEST(FakeStream, FinishesItsWorkWhenItIsDestroyed) {
  std::promise<void> ran;
  const RawMemory memory(0, 16);
  std::function<void()> release;
  {
    RawStream stream;
    release = stream.hold();
    stream.run([&] { ran.set_value(); });
  }
  release();
  ran.get_future().wait();
  use(0);
  EXPECT_EQ(driver().contextSynchronize(), kSuccess);
}

TEST(FakeStream, FreeingWaitsForTheDevice) {
  RawStream stream;
  use(0);
  Address address = 0;
  ASSERT_EQ(driver().memAlloc(&address, 64), kSuccess);
  const auto release = stream.hold();
  std::atomic<bool> released{false};
  bool freedTooEarly = false;
  std::thread freeing([&] {
    use(0);
    driver().memFree(address);
    freedTooEarly = !released;
  });
  released = true;
  release();
  freeing.join();
  EXPECT_FALSE(freedTooEarly);
}

TEST(FakeStream, HostFunctionsMayNotCallTheDriver) {
  constexpr Status kNotPermitted = 800;
  RawStream stream;
  Status status = kSuccess;
  stream.run([&] { status = driver().streamQuery(stream.handle()); });
  EXPECT_EQ(stream.synchronize(), kSuccess);
  EXPECT_EQ(status, kNotPermitted);
}

TEST(FakeStream, EventsBelongToTheirDevice) {
  constexpr Status kInvalidHandle = 400;
  if (Device::count() < 2) GTEST_SKIP() << "needs two GPUs";
  RawStream stream(1);
  const RawEvent event(0);
  EXPECT_EQ(event.record(stream), kInvalidHandle);
  EXPECT_EQ(event.holds(stream), kSuccess);
}

TEST(FakeStream, HandlesThatAreGoneAreUnknown) {
  constexpr Status kInvalidHandle = 400;
  StreamHandle handle = nullptr;
  use(0);
  ASSERT_EQ(driver().streamCreate(&handle, 1), kSuccess);
  ASSERT_EQ(driver().streamDestroy(handle), kSuccess);
  EXPECT_EQ(driver().streamQuery(handle), kInvalidHandle);
  EXPECT_EQ(driver().streamDestroy(handle), kInvalidHandle);
}

using FakeFailureDeathTest = FreshProcesses;

TEST_F(FakeFailureDeathTest, AFailureStaysAndHoldsNobody) {
  const auto body = [] {
    RawStream stream;
    RawStream other(Device::count() - 1);
    const RawMemory host(-1, 64);
    const RawMemory device(0, 64);
    const RawEvent event;
    ASSERT_EQ(copy(device, host, 64, stream), kSuccess);
    ASSERT_EQ(event.record(stream), kSuccess);
    ASSERT_EQ(event.holds(other), kSuccess);
    EXPECT_EQ(other.synchronize(), kSuccess);
    EXPECT_EQ(stream.synchronize(), 700);
    EXPECT_EQ(driver().eventQuery(event.handle()), 700);
    EXPECT_EQ(copy(device, host, 64, stream), 700);
  };
  expectFine({{"GRADLINK_FAKE_FAULTS", "copy=1"}, {"GRADLINK_FAKE_GPUS", "2"}}, body);
}

}  // namespace
}  // namespace gradlink::cuda
