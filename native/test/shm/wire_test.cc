// Wires between threads of one process.
#include <sched.h>

#include "shm/rendezvous/rendezvous.h"
#include "shm/shm_wire.h"
#include "shm/wire_layout.h"
#include "test/threads_support.h"
#include "test/wire_support.h"

namespace gradlink::test {
namespace {

std::vector<std::optional<Error>> onWires(int size, const std::function<void(Wire&, int)>& body) {
  const std::string name = freshName();
  return onThreads(size, [&](int rank) {
    auto wire = shm::joinWire(optionsFor(name, rank, size));
    body(*wire, rank);
    wire->close(Deadline::in(20000));
  });
}

class WiresOfThreads : public testing::TestWithParam<int> {};

TEST_P(WiresOfThreads, DeliverInOrderAndUnaltered) {
  expectNone(onWires(GetParam(), [](Wire& wire, int) { EXPECT_EQ(exchange(wire, 3000), ""); }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, WiresOfThreads, testing::Values(1, 2, 3, 7));

TEST(WireOfThreads, KnowsWhetherEveryRankHasACore) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  const int count = CPU_COUNT(&cores);
  expectNone(onWires(count, [](Wire& wire, int) { EXPECT_TRUE(wire.ranksHaveCores()); }));
  expectNone(onWires(count + 1, [](Wire& wire, int) { EXPECT_FALSE(wire.ranksHaveCores()); }));
}

TEST(WireOfThreads, NeverWaitsForTheReceiver) {
  constexpr std::uint64_t kMany = 5000;  // more than any ring holds
  std::atomic<bool> sentAll{false};
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    if (rank == 0) {
      for (std::uint64_t n = 0; n < kMany; ++n) wire.send(1, numbered(n, 16), nullptr, 0, 0);
      sentAll = true;
      return;  // and close() delivers what has not fitted
    }
    waitUntil([&] { return sentAll.load(); });
    WireEvents events;
    ASSERT_TRUE(pollUntil(wire, events, [&] { return events.left.size() == 1; }));
    ASSERT_EQ(events.messages.size(), kMany);
    for (std::uint64_t n = 0; n < kMany; ++n) EXPECT_EQ(numberOf(events.messages[n]), n);
  }));
}

TEST(WireOfThreads, TakesAnyNumberOfReleasesBackAtOnce) {
  constexpr std::uint64_t kMany = 3 * shm::wire::Pair::kReceipts;
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    WireEvents events;
    if (rank == 0) {
      void* memory = wire.allocate(64);
      for (std::uint64_t n = 0; n < kMany; ++n) {
        wire.send(1, numbered(n, 8), memory, 64, n + 1);
      }
      ASSERT_TRUE(pollUntil(wire, events, [&] { return events.sent.size() == kMany; }));
      std::sort(events.sent.begin(), events.sent.end());
      for (std::uint64_t n = 0; n < kMany; ++n) EXPECT_EQ(events.sent[n], n + 1);
    } else {
      ASSERT_TRUE(pollUntil(wire, events, [&] { return events.messages.size() == kMany; }));
      for (const WireMessage& m : events.messages) wire.release(m.token);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return events.left.size() == 1; }));
    }
  }));
}

TEST(WireOfThreads, KeepsAPayloadUntilItIsReleased) {
  std::atomic<bool> released{false};
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    WireEvents events;
    if (rank == 0) {
      auto* memory = static_cast<int*>(wire.allocate(64));
      *memory = 42;
      sendText(wire, 1, "first", memory, 64, 7);
      sendText(wire, 1, "second");
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.sent.empty(); }));
      EXPECT_TRUE(released);
      EXPECT_EQ(events.sent, std::vector<std::uint64_t>{7});
    } else {
      ASSERT_TRUE(pollUntil(wire, events, [&] { return events.messages.size() == 2; }));
      EXPECT_EQ(headerOf(events.messages[1]), "second");
      EXPECT_EQ(*static_cast<const int*>(events.messages[0].payload), 42);
      released = true;
      std::thread([&] { wire.release(events.messages[0].token); }).join();
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.left.empty(); }));
    }
  }));
}

TEST(WireOfThreads, TellsReceiptsThatDoNotMatterWithTheNextEventAndAgainOnceTheyDo) {
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    WireEvents events;
    if (rank == 0) {
      auto* memory = wire.allocate(128);
      wire.setReceiptsMatter(false);
      sendText(wire, 1, "first", memory, 64, 7);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
      EXPECT_EQ(events.sent, std::vector<std::uint64_t>{7}) << "released before it was answered";
      wire.release(events.messages[0].token);
      events.clear();
      sendText(wire, 1, "second", memory, 64, 8);
      wire.setReceiptsMatter(true);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.sent.empty(); }));
      EXPECT_EQ(events.sent, std::vector<std::uint64_t>{8});
    } else {
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
      wire.release(events.messages[0].token);
      sendText(wire, 0, "answer");
      events.clear();
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
      wire.release(events.messages[0].token);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.left.empty(); }));
    }
  }));
}

TEST(WireOfThreads, WakesAPollThatWaits) {
  expectNone(onWires(1, [&](Wire& wire, int) {
    WireEvents events;
    std::thread other([&] { wire.wake(); });
    wire.poll(events, Deadline::never());
    other.join();
    EXPECT_TRUE(events.empty());
    wire.wake();
    wire.poll(events, Deadline::never());
    EXPECT_TRUE(events.empty());
  }));
}

TEST(WireOfThreads, PollsNoLongerThanItsDeadline) {
  expectNone(onWires(1, [&](Wire& wire, int) {
    WireEvents events;
    const Deadline soon = Deadline::in(30);
    wire.poll(events, soon);
    EXPECT_TRUE(soon.passed());
    EXPECT_TRUE(events.empty());
  }));
}

TEST(WireOfThreads, TellsWhoLeftAfterItsLastMessageAndReturnsWhatItDidNotRelease) {
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    WireEvents events;
    if (rank == 0) {
      void* memory = wire.allocate(64);
      sendText(wire, 1, "data", memory, 64, 5);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.left.empty(); }));
      EXPECT_EQ(events.left, std::vector<int>{1});
      ASSERT_EQ(events.messages.size(), 1u);
      EXPECT_EQ(headerOf(events.messages[0]), "farewell");
      EXPECT_EQ(events.sent, std::vector<std::uint64_t>{5});
      // To somebody who is gone: told as sent at once.
      events.clear();
      sendText(wire, 1, "too late", memory, 64, 6);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.sent.empty(); }));
      EXPECT_EQ(events.sent, std::vector<std::uint64_t>{6});
      EXPECT_TRUE(events.left.empty());
    } else {
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
      sendText(wire, 0, "farewell");
    }
  }));
}

TEST(WireOfThreads, TwoThatCloseAtOnceDoNotWaitForEachOther) {
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    sendText(wire, 1 - rank, "held", wire.allocate(64), 64, 1);
    WireEvents events;
    ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
    const Deadline until = Deadline::in(20000);
    wire.close(until);
    EXPECT_FALSE(until.passed());
  }));
}

TEST(WireOfThreads, AWireThatEndsWithoutAGoodbyeIsLostAndItsPayloadsStayReadable) {
  const std::string name = freshName();
  std::atomic<bool> ended{false};
  expectNone(onThreads(2, [&](int rank) {
    auto wire = shm::joinWire(optionsFor(name, rank, 2));
    if (rank == 0) {
      auto* memory = static_cast<int*>(wire->allocate(1 << 20));
      for (int i = 0; i < 1 << 18; ++i) memory[i] = i;
      sendText(*wire, 1, "last words", memory, 1 << 20, 1);
      wire.reset();
      ended = true;
      return;
    }
    waitUntil([&] { return ended.load(); });
    WireEvents events;
    ASSERT_TRUE(pollUntil(*wire, events, [&] { return !events.lost.empty(); }));
    EXPECT_EQ(events.lost, std::vector<int>{0});
    ASSERT_EQ(events.messages.size(), 1u);
    const auto* words = static_cast<const int*>(events.messages[0].payload);
    for (int i = 0; i < 1 << 18; ++i) ASSERT_EQ(words[i], i);
    wire->release(events.messages[0].token);
    wire->close(Deadline::in(20000));
  }));
}

TEST(WireOfThreads, PayloadsOfWhoEndedBeforeTheOtherHadItsWireStayReadable) {
  const std::string name = freshName();
  std::atomic<bool> ended{false};
  expectNone(onThreads(2, [&](int rank) {
    shm::JoinOptions options = optionsFor(name, rank, 2);
    options.slotBytes = 1;
    auto membership = shm::meetThreads(options, Deadline::in(20000));
    if (rank == 1) {
      waitUntil([&] { return ended.load(); });
    }
    auto wire = std::make_unique<shm::ShmWire>(std::move(membership), rank);
    if (rank == 0) {
      auto* memory = static_cast<int*>(wire->allocate(4096));
      memory[1000] = 42;
      sendText(*wire, 1, "last words", memory, 4096, 1);
      wire.reset();
      ended = true;
      return;
    }
    WireEvents events;
    ASSERT_TRUE(pollUntil(*wire, events, [&] { return !events.lost.empty(); }));
    ASSERT_EQ(events.messages.size(), 1u);
    EXPECT_EQ(static_cast<const int*>(events.messages[0].payload)[1000], 42);
    wire->release(events.messages[0].token);
    wire->close(Deadline::in(20000));
  }));
}

TEST(WireOfThreads, RefusesWhatItCannotSend) {
  expectNone(onWires(1, [&](Wire& wire, int) {
    void* memory = wire.allocate(8);
    EXPECT_EQ(codeOf([&] { sendText(wire, 1, "nobody"); }), ErrorCode::invalidArgument);
    EXPECT_EQ(codeOf([&] { sendText(wire, 0, std::string(225, 'x')); }),
              ErrorCode::invalidArgument);
    EXPECT_EQ(codeOf([&] { sendText(wire, 0, "x", memory, 8, 0); }), ErrorCode::invalidArgument);
  }));
}

TEST(WireOfThreads, OpensFromACommunicatorAndOutlivesIt) {
  expectNone(onRanks(3, [](Communicator& comm, int) {
    auto first = comm.openWire();
    auto second = comm.openWire();
    EXPECT_STREQ(first->backend(), "shm");
    comm.close();
    EXPECT_EQ(exchange(*first, 200), "");
    EXPECT_EQ(exchange(*second, 200), "");
    first->close(Deadline::in(20000));
    second->close(Deadline::in(20000));
  }));
}

TEST(WireOfThreads, CountsBytes) {
  expectNone(onWires(2, [&](Wire& wire, int rank) {
    WireEvents events;
    if (rank == 0) {
      void* memory = wire.allocate(1000);
      sendText(wire, 1, "12345678", memory, 1000, 1);
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.sent.empty(); }));
      EXPECT_EQ(wire.bytesSent(), (std::vector<std::uint64_t>{0, 1008}));
    } else {
      ASSERT_TRUE(pollUntil(wire, events, [&] { return !events.messages.empty(); }));
      EXPECT_EQ(wire.bytesReceived(), (std::vector<std::uint64_t>{1008, 0}));
      wire.release(events.messages[0].token);
    }
  }));
}

}  // namespace
}  // namespace gradlink::test
