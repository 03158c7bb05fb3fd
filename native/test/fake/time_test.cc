// Simulated time: rates are exactly those of the settings, and clocks follow the order of the work.
#include <thread>

#include "test/fake/support.h"

namespace gradlink::cuda {
namespace {

constexpr std::size_t kBytes = 1 << 20;

class FakeTimeDeathTest : public FreshProcesses {
 protected:
  /// In a process with two GPUs and these settings.
  static void run(const char* links, const std::function<void()>& body, const char* peers = "all") {
    expectFine({{"GRADLINK_FAKE_GPUS", "2"},
                {"GRADLINK_FAKE_LINKS", links},
                {"GRADLINK_FAKE_PEERS", peers}},
               body);
  }
};

/// Bytes a second of one copy on a stream of `device`.
double rateOf(const RawMemory& to, const RawMemory& from, int device) {
  RawStream stream(device);
  const RawEvent begin(device);
  const RawEvent end(device);
  EXPECT_EQ(begin.record(stream), kSuccess);
  EXPECT_EQ(copy(to, from, kBytes, stream), kSuccess);
  EXPECT_EQ(end.record(stream), kSuccess);
  EXPECT_EQ(stream.synchronize(), kSuccess);
  return kBytes / end.secondsSince(begin);
}

void expectRate(double rate, double expected) { EXPECT_NEAR(rate, expected, expected * 1e-5); }

void enablePeer(int from, int to) {
  use(from);
  EXPECT_EQ(driver().enablePeerAccess(contextOf(to), 0), kSuccess);
}

TEST_F(FakeTimeDeathTest, EachLinkAndDirectionHasItsRate) {
  run("host>0=10e9,0>host=20e9,0>1=30e9,1>0=40e9,1-1=50e9", [] {
    enablePeer(0, 1);
    const RawMemory host(-1, kBytes);
    const RawMemory zero(0, kBytes);
    const RawMemory one(1, kBytes);
    const RawMemory more(1, kBytes);
    expectRate(rateOf(zero, host, 0), 10e9);
    expectRate(rateOf(host, zero, 0), 20e9);
    expectRate(rateOf(one, zero, 0), 30e9);
    expectRate(rateOf(zero, one, 0), 40e9);
    expectRate(rateOf(more, one, 1), 50e9);
  });
}

TEST_F(FakeTimeDeathTest, WithoutPeerAccessCopiesGoThroughTheHost) {
  const auto body = [] {
    const RawMemory zero(0, kBytes);
    const RawMemory one(1, kBytes);
    expectRate(rateOf(one, zero, 0), 5e9);
  };
  run("host-0=10e9,host-1=10e9,0-1=30e9", body);
  run("host-0=10e9,host-1=10e9,0-1=30e9", body, "none");
}

TEST_F(FakeTimeDeathTest, StreamsOverlapAndWaitersTakeTheLatestTime) {
  run("host-0=1e9,0-0=4e9", [] {
    const RawMemory host(-1, kBytes);
    const RawMemory memory(0, kBytes);
    const RawMemory from(0, kBytes);
    const RawMemory to(0, kBytes);
    RawStream slow;
    RawStream fast;
    const RawEvent begin;
    const RawEvent slowEnd;
    const RawEvent fastEnd;
    const RawEvent end;
    ASSERT_EQ(begin.record(slow), kSuccess);
    ASSERT_EQ(begin.holds(fast), kSuccess);
    ASSERT_EQ(copy(memory, host, kBytes, slow), kSuccess);
    ASSERT_EQ(copy(to, from, kBytes, fast), kSuccess);
    ASSERT_EQ(slowEnd.record(slow), kSuccess);
    ASSERT_EQ(fastEnd.record(fast), kSuccess);
    ASSERT_EQ(slowEnd.holds(fast), kSuccess);
    ASSERT_EQ(copy(to, from, kBytes, fast), kSuccess);
    ASSERT_EQ(end.record(fast), kSuccess);
    ASSERT_EQ(fast.synchronize(), kSuccess);
    const double unit = kBytes / 1e9;
    EXPECT_NEAR(fastEnd.secondsSince(begin), unit / 4, unit * 1e-5);
    EXPECT_NEAR(slowEnd.secondsSince(begin), unit, unit * 1e-5);
    EXPECT_NEAR(end.secondsSince(begin), unit * 5 / 4, unit * 1e-5);
  });
}

TEST_F(FakeTimeDeathTest, WorkStartsNoEarlierThanWhatItsThreadHasSeen) {
  run("host-0=1e9,0-0=1e9", [] {
    const RawMemory host(-1, kBytes);
    const RawMemory memory(0, kBytes);
    RawStream one;
    RawStream other;
    const RawEvent begin;
    const RawEvent end;
    ASSERT_EQ(begin.record(other), kSuccess);
    ASSERT_EQ(copy(memory, host, kBytes, one), kSuccess);
    ASSERT_EQ(one.synchronize(), kSuccess);
    ASSERT_EQ(copy(memory, host, kBytes, other), kSuccess);
    ASSERT_EQ(end.record(other), kSuccess);
    ASSERT_EQ(other.synchronize(), kSuccess);
    const double unit = kBytes / 1e9;
    EXPECT_NEAR(end.secondsSince(begin), 2 * unit, unit * 1e-5);
  });
}

TEST_F(FakeTimeDeathTest, WhatOtherThreadsWaitForCostsThisThreadNothing) {
  run("host-0=1e9", [] {
    const RawMemory host(-1, kBytes);
    const RawMemory memory(0, kBytes);
    RawStream one;
    const RawEvent begin;
    const RawEvent end;
    ASSERT_EQ(begin.record(one), kSuccess);
    std::thread([] {
      const RawMemory theirHost(-1, 8 * kBytes);
      const RawMemory theirs(0, 8 * kBytes);
      RawStream their;
      EXPECT_EQ(copy(theirs, theirHost, 8 * kBytes, their), kSuccess);
      EXPECT_EQ(their.synchronize(), kSuccess);
    }).join();
    ASSERT_EQ(copy(memory, host, kBytes, one), kSuccess);
    ASSERT_EQ(end.record(one), kSuccess);
    ASSERT_EQ(one.synchronize(), kSuccess);
    EXPECT_NEAR(end.secondsSince(begin), kBytes / 1e9, kBytes / 1e9 * 1e-5);
  });
}

TEST_F(FakeTimeDeathTest, HostFunctionsMoveTheClockOn) {
  run("", [] {
    RawStream stream;
    const RawEvent begin;
    const RawEvent end;
    ASSERT_EQ(begin.record(stream), kSuccess);
    stream.run([] {
      const double now = symbolOf<double()>("gradlinkFakeNow")();
      const auto advanceTo = symbolOf<void(double)>("gradlinkFakeAdvanceTo");
      advanceTo(now + 0.25);
      advanceTo(now);  // never back
    });
    ASSERT_EQ(end.record(stream), kSuccess);
    ASSERT_EQ(stream.synchronize(), kSuccess);
    EXPECT_NEAR(end.secondsSince(begin), 0.25, 1e-6);
  });
}

}  // namespace
}  // namespace gradlink::cuda
