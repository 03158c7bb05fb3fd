// How ranks that are threads meet and fail: who is named, and that nobody hangs.
#include <latch>

#include "test/threads_support.h"

namespace gradlink::test {
namespace {

// Rank 0 is the late one because the others wait for it first: of two that come at different times
// the earlier could give up on the other.
TEST(ThreadsFailing, NameTheRankThatNeverCalls) {
  std::latch done(2);
  const auto errors = onRanks(3, [&](Communicator& comm, int rank) {
    if (rank == 0) {
      done.wait();
      comm.barrier();  // too late: the others have given up, and it hears so
      return;
    }
    try {
      comm.barrier({.timeoutMs = 60});
    } catch (...) {
      done.count_down();
      throw;
    }
  });
  expectAll(errors, ErrorCode::timeout, 0);
}

TEST(ThreadsFailing, NameTheRankThatClosed) {
  const auto errors = onRanks(3, [](Communicator& comm, int rank) {
    comm.barrier();
    if (rank == 1) return comm.close();
    comm.barrier();
  });
  EXPECT_FALSE(errors[1].has_value());
  expectAll({errors[0], errors[2]}, ErrorCode::peerLost, 1);
}

TEST(ThreadsFailing, HearAboutARankThatLeavesInMidCall) {
  std::latch joined(3);
  const std::string name = freshName();
  const auto errors = onThreads(3, [&](int rank) {
    auto comm = shm::join(optionsFor(name, rank, 3));
    joined.arrive_and_wait();
    if (rank == 1) {
      const std::jthread ender([&] { comm->leave(); });
      float x = 0;
      comm->receive(&x, 1, DType::float32, 0, 5);
      return;
    }
    comm->barrier();
  });
  expectAll({errors[0], errors[2]}, ErrorCode::peerLost, 1);
  expectAll({errors[1]}, ErrorCode::closed);
}

// A rank that returned with an error may free its buffers at once; AddressSanitizer and
// ThreadSanitizer see a peer that reads on.
TEST(ThreadsFailing, NobodyTouchesBuffersOfARankThatGaveUp) {
  for (int round = 0; round < 20; ++round) {
    onRanks(4, [&](Communicator& comm, int rank) {
      std::vector<float> data(300000, 1);
      const void* in[] = {data.data()};
      void* out[] = {data.data()};
      std::jthread aborter;
      if (rank == round % 4) aborter = std::jthread([&] { comm.abort("now"); });
      for (int i = 0; i < 5; ++i)
        comm.allReduce({in, out}, data.size(), DType::float32, ReduceOp::max);
    });
  }
}

TEST(ThreadsRendezvous, NamesAllMissingRanksToEverybodyWhoCame) {
  const std::string name = freshName();
  const auto errors = onThreads(2, [&](int i) {
    auto options = optionsFor(name, i == 0 ? 0 : 3, 5);
    options.timeoutMs = 50;
    shm::join(options);
  });
  expectAll(errors, ErrorCode::timeout);
  // Who came later may have met alone, after the first gave up: the first one's list is the one
  // that is sure.
  EXPECT_NE(std::string(errors[0]->what()).find("1, 2"), std::string::npos) << errors[0]->what();
}

TEST(ThreadsRendezvous, RefusesDifferentSizesAndARankTakenTwice) {
  for (bool sizes : {true, false}) {
    const std::string name = freshName();
    expectAll(
        onThreads(2, [&](int i) { shm::join(optionsFor(name, sizes ? i : 0, sizes ? 3 + i : 3)); }),
        ErrorCode::mismatch);
  }
}

TEST(ThreadsRendezvous, CanBeCancelled) {
  std::atomic<bool> cancelled{true};
  auto options = optionsFor(freshName(), 0, 2);
  options.cancelled = &cancelled;
  EXPECT_EQ(codeOf([&] { shm::join(options); }), ErrorCode::closed);
}

TEST(ThreadsRendezvous, ANameIsFreeAgainOnceAllHaveJoined) {
  const std::string name = freshName();
  expectNone(onThreads(3, [&](int rank) {
    for (int generation = 0; generation < 20; ++generation) {
      auto comm = shm::join(optionsFor(name, rank, 3));
      EXPECT_EQ(runRank(*comm, {Op::allReduce, 3, 5}), "");
    }
  }));
}

}  // namespace
}  // namespace gradlink::test
