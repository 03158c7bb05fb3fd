// Captured graphs of the fake driver.
#include <thread>

#include "test/fake/support.h"

namespace gradlink::cuda {
namespace {

constexpr int kGlobal = 0;
constexpr int kThreadLocal = 1;
constexpr int kRelaxed = 2;

Status begin(const RawStream& stream, int mode = kThreadLocal) {
  return driver().beginCapture(stream.handle(), mode);
}
Status end(const RawStream& stream, GraphHandle* graph) {
  return driver().endCapture(stream.handle(), graph);
}

/// What a stream captured, ready to be launched.
class Replay {
 public:
  explicit Replay(const RawStream& stream) {
    EXPECT_EQ(end(stream, &graph_), kSuccess);
    EXPECT_EQ(driver().graphInstantiate(&exec_, graph_, 0), kSuccess);
  }
  ~Replay() {
    driver().graphExecDestroy(exec_);
    driver().graphDestroy(graph_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  Status launch(const RawStream& stream) const {
    return driver().graphLaunch(exec_, stream.handle());
  }

 private:
  GraphHandle graph_ = nullptr;
  GraphExecHandle exec_ = nullptr;
};

TEST(FakeGraph, LanesRunBesideEachOtherAndJoin) {
  RawStream one;
  RawStream other(Device::count() - 1);
  const RawEvent fork(0);
  const RawEvent join(Device::count() - 1);
  // Each lane waits for the other, at each launch anew.
  std::atomic<int> arrived{0};
  std::atomic<int> rounds{0};
  const auto meet = [&] {
    const int round = rounds.load();
    if (++arrived % 2 == 0) {
      ++rounds;
    } else {
      while (rounds.load() == round) std::this_thread::yield();
    }
  };
  bool joined = true;
  std::atomic<int> done{0};
  ASSERT_EQ(begin(one), kSuccess);
  ASSERT_EQ(fork.record(one), kSuccess);
  ASSERT_EQ(fork.holds(other), kSuccess);
  one.run(meet);
  other.run(meet);
  other.run([&] { ++done; });
  ASSERT_EQ(join.record(other), kSuccess);
  ASSERT_EQ(join.holds(one), kSuccess);
  one.run([&] { joined = joined && done == rounds; });
  const Replay replay(one);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(replay.launch(one), kSuccess);
  ASSERT_EQ(one.synchronize(), kSuccess);
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(done, 3);
  EXPECT_TRUE(joined);
  // The other stream is its own again.
  EXPECT_EQ(other.query(), kSuccess);
}

TEST(FakeGraph, WhatIsNotJoinedIsAnError) {
  constexpr Status kUnjoined = 904;
  RawStream one;
  RawStream other;
  const RawEvent fork;
  ASSERT_EQ(begin(one), kSuccess);
  ASSERT_EQ(fork.record(one), kSuccess);
  ASSERT_EQ(fork.holds(other), kSuccess);
  other.run([] {});
  GraphHandle graph = nullptr;
  EXPECT_EQ(end(one, &graph), kUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(other.synchronize(), kSuccess);
}

TEST(FakeGraph, AskingACapturedStreamSpoilsTheCapture) {
  constexpr Status kUnsupported = 900;
  constexpr Status kInvalidated = 901;
  RawStream stream;
  ASSERT_EQ(begin(stream), kSuccess);
  EXPECT_EQ(stream.query(), kUnsupported);
  GraphHandle graph = nullptr;
  EXPECT_EQ(end(stream, &graph), kInvalidated);
  EXPECT_EQ(stream.synchronize(), kSuccess);
}

TEST(FakeGraph, AnEventOfAGraphCannotBeAskedNorWaitedForOutside) {
  constexpr Status kCapturedEvent = 907;
  RawStream stream;
  RawStream other;
  const RawEvent event;
  ASSERT_EQ(begin(stream, kRelaxed), kSuccess);
  ASSERT_EQ(event.record(stream), kSuccess);
  EXPECT_EQ(driver().eventQuery(event.handle()), kCapturedEvent);
  const Replay replay(stream);
  EXPECT_EQ(event.holds(other), kCapturedEvent);
}

TEST(FakeGraph, MayNotWaitForWhatIsNotCaptured) {
  constexpr Status kIsolation = 905;
  RawStream stream;
  RawStream other;
  const RawEvent event;
  ASSERT_EQ(event.record(other), kSuccess);
  ASSERT_EQ(begin(stream), kSuccess);
  EXPECT_EQ(event.holds(stream), kIsolation);
  GraphHandle graph = nullptr;
  EXPECT_NE(end(stream, &graph), kSuccess);
}

TEST(FakeGraph, AllocatingDuringACaptureDependsOnItsMode) {
  constexpr Status kUnsupported = 900;
  RawStream stream;
  const auto allocate = [] {
    use(0);
    Address address = 0;
    const Status status = driver().memAlloc(&address, 16);
    return std::pair(status, address);
  };
  const auto elsewhere = [&] {
    std::pair<Status, Address> result;
    std::thread([&] { result = allocate(); }).join();
    return result;
  };
  struct Case {
    int mode;
    Status here;
    Status onAnotherThread;
  };
  for (const auto& [mode, here, onAnotherThread] :
       {Case{kGlobal, kUnsupported, kUnsupported}, Case{kThreadLocal, kUnsupported, kSuccess},
        Case{kRelaxed, kSuccess, kSuccess}}) {
    ASSERT_EQ(begin(stream, mode), kSuccess);
    const auto [theirStatus, theirs] = elsewhere();
    const auto [status, mine] = allocate();
    EXPECT_EQ(theirStatus, onAnotherThread) << mode;
    EXPECT_EQ(status, here) << mode;
    GraphHandle graph = nullptr;
    EXPECT_EQ(end(stream, &graph) == kSuccess, mode == kRelaxed);
    if (graph) driver().graphDestroy(graph);
    driver().memFree(theirs);
    driver().memFree(mine);
  }
}

TEST(FakeGraph, CapturesOfOneThreadAreEndedByIt) {
  constexpr Status kWrongThread = 908;
  RawStream stream;
  ASSERT_EQ(begin(stream), kSuccess);
  GraphHandle graph = nullptr;
  Status status = kSuccess;
  std::thread([&] { status = end(stream, &graph); }).join();
  EXPECT_EQ(status, kWrongThread);
  EXPECT_EQ(end(stream, &graph), kSuccess);
  driver().graphDestroy(graph);
}

}  // namespace
}  // namespace gradlink::cuda
