// Messages between ranks that are threads: order, tags, mismatches, ranks that leave.
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

TEST(ThreadsMessages, AreFoundByTagAndFromAnySource) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) {
    if (rank > 0) {
      for (int tag : {1, 2}) {
        const int value = rank * 10 + tag;
        comm.send(&value, 1, DType::int32, 0, tag);
      }
      return comm.barrier();
    }
    int seen = 0;
    for (int i = 0; i < 3; ++i) {
      int value = 0;
      const Received received = comm.receive(&value, 1, DType::int32, kAnySource, 2);
      EXPECT_EQ(value, received.source * 10 + 2);
      seen |= 1 << received.source;
    }
    EXPECT_EQ(seen, 0b1110);
    for (int source : {3, 1, 2}) {
      int value = 0;
      comm.receive(&value, 1, DType::int32, source, 1);
      EXPECT_EQ(value, source * 10 + 1);
    }
    comm.barrier();
  }));
}

TEST(ThreadsMessages, OfABusyRankStarveNoOther) {
  expectNone(onRanks(3, [](Communicator& comm, int rank) {
    for (int i = 0; rank > 0 && i < (rank == 1 ? 10 : 1); ++i) {
      comm.send(&rank, 1, DType::int32, 0, 0);
    }
    comm.barrier();
    int value = 0;
    int sum = 0;
    for (int i = 0; rank == 0 && i < 2; ++i) {
      sum += comm.receive(&value, 1, DType::int32, kAnySource, 0).source;
    }
    EXPECT_EQ(sum, rank == 0 ? 1 + 2 : 0);
  }));
}

TEST(ThreadsMessages, ConcurrentSmallSendsDoNotDeadlock) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> mine(2000, static_cast<float>(rank)), theirs(2000);
      for (int peer = 0; peer < 4; ++peer)
        comm.send(mine.data(), mine.size(), DType::float32, peer, round);
      for (int peer = 0; peer < 4; ++peer) {
        comm.receive(theirs.data(), theirs.size(), DType::float32, peer, round);
        EXPECT_EQ(theirs[1999], static_cast<float>(peer));
      }
    }
  }));
}

TEST(ThreadsMessages, TooLongIsAMismatchOnBothSides) {
  for (std::size_t length : {100u, 100000u}) {
    const auto errors = onRanks(2, [&](Communicator& comm, int rank) {
      std::vector<float> data(length);
      if (rank == 0) {
        comm.send(data.data(), length, DType::float32, 1, 0);
        comm.barrier();  // a short send has returned by now: its next call tells
      } else {
        comm.receive(data.data(), length / 2, DType::float32, 0, 0);
      }
    });
    expectAll(errors, ErrorCode::mismatch);
  }
}

TEST(ThreadsMessages, AReceiveThatTimesOutLeavesTheCommunicatorUsable) {
  expectNone(onRanks(2, [](Communicator& comm, int rank) {
    float x = 0;
    const auto error =
        errorOf([&] { comm.receive(&x, 1, DType::float32, 1 - rank, 3, {.timeoutMs = 20}); });
    ASSERT_TRUE(error) << "receive did not throw";
    EXPECT_EQ(error->code, ErrorCode::timeout);
    EXPECT_TRUE(error->usable);
    EXPECT_EQ(runRank(comm, {Op::allReduce, 2, 5000}), "");
  }));
}

TEST(ThreadsMessages, AReceiveFromARankThatLeftFailsAfterItsLastMessage) {
  const auto errors = onRanks(2, [](Communicator& comm, int rank) {
    int value = 42;
    if (rank == 0) {
      comm.send(&value, 1, DType::int32, 1, 0);
      return comm.close();
    }
    int got = 0;
    comm.receive(&got, 1, DType::int32, 0, 0);
    EXPECT_EQ(got, 42);
    comm.receive(&got, 1, DType::int32, 0, 0);
  });
  EXPECT_FALSE(errors[0].has_value());
  expectAll({errors[1]}, ErrorCode::peerLost, 0);
}

}  // namespace
}  // namespace gradlink::test
