// What ranks that are threads compute together, and how long their waits spin.
#include "shm/wake_up.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

class Threads : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(Threads, GiveTheSameAsAPlainLoop) {
  const auto [op, size] = GetParam();
  std::vector<Case> cases = everyLength(op, size, {0, 1, 7, 100, 4099, 40001});
  for (const Case& c : everyType(op, size, 45)) cases.push_back(c);
  expectNone(onRanks(size, [&](Communicator& comm, int) {
    for (const Case& c : toTheBit(cases)) EXPECT_EQ(runRank(comm, c), "");
  }));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Threads,
                         testing::Combine(testing::ValuesIn(kAllOps),
                                          testing::Values(1, 2, 3, 4, 7)),
                         kNameOfCase);

TEST(ThreadsTogether, MixSmallAndLargeCallsInAnyOrder) {
  expectNone(onRanks(4, [](Communicator& comm, int) {
    for (std::size_t i = 0; i < 200; ++i) {
      const Op op = kAllOps[i % std::size(kAllOps)];
      EXPECT_EQ(runRank(comm, {op, 4, (i * 37) % 3000, DType::float32}), "");
      if (i % 3 == 0) comm.barrier();
    }
  }));
}

// A small call's payload and a large call's pointers share a place; a rank may run one call ahead
// of another.
TEST(ThreadsTogether, BarriersOrderWhatCameBefore) {
  std::atomic<int> before{0};
  expectNone(onRanks(4, [&](Communicator& comm, int) {
    for (int round = 1; round <= 100; ++round) {
      before.fetch_add(1);
      comm.barrier();
      EXPECT_GE(before.load(), 4 * round);
      comm.barrier();
    }
  }));
}

TEST(ThreadsTogether, ReportAMismatchOnAllSidesAndGoOn) {
  const auto errors = onRanks(3, [](Communicator& comm, int rank) {
    std::vector<float> data(50'000, 1);
    const auto sum = [&](std::size_t count) {
      sumFloats(comm, data.data(), count, {.name = rank == 1 ? "odd" : "even"});
    };
    EXPECT_EQ(codeOf([&] { sum(data.size() - (rank == 1 ? 1 : 0)); }), ErrorCode::mismatch);
    // All of them have met for it, so the next call is in step again.
    sum(20);
    EXPECT_EQ(data[0], 3);
    sum(rank == 1 ? 12 : 10);
  });
  expectAll(errors, ErrorCode::mismatch, 1);
  for (auto& error : errors) {
    EXPECT_TRUE(error->usable);
    EXPECT_EQ(lacking(error->what(), {"1 called allReduce(count 12, float32, sum) as 'odd'",
                                      "0, 2 called allReduce(count 10, float32, sum) as 'even'"}),
              "")
        << error->what();
  }
}

TEST(ThreadsSplit, OrdersByKeyAndLeavesNegativeColorsOut) {
  expectNone(onRanks(5, [](Communicator& comm, int rank) {
    auto part = comm.split(rank == 4 ? -1 : rank % 2, -rank);
    if (rank == 4) {
      EXPECT_EQ(part, nullptr);
    } else {
      EXPECT_EQ(part->size(), 2);
      EXPECT_EQ(part->heldRanks()[0], rank < 2 ? 1 : 0);
      EXPECT_EQ(runRank(*part, {Op::allGather, 2, 100}), "");
      auto again = part->split(0, 0);
      EXPECT_EQ(runRank(*again, {Op::allReduce, 2, 10000}), "");
    }
    // With who stood aside, too.
    EXPECT_EQ(comm.split(0, 0)->size(), 5);
  }));
}

}  // namespace
}  // namespace gradlink::test

namespace gradlink::shm {
namespace {

TEST(WakeUp, IsMeasuredOnceAndPlausible) {
  const WakeUp& first = wakeUp();
  EXPECT_GT(first.nanoseconds, 0);
  EXPECT_GT(first.pauseNanoseconds, 0);
  EXPECT_EQ(&wakeUp(), &first);
}

TEST(WakeUp, AWaitSpinsAsLongAsAWakeUpTakes) {
  EXPECT_EQ(spinsFor({.nanoseconds = 108e3, .pauseNanoseconds = 20}), 5400);
  EXPECT_EQ(spinsFor({.nanoseconds = 33e3, .pauseNanoseconds = 11}), 3000);
}

TEST(WakeUp, AWaitSpinsNeitherForNothingNorForEver) {
  EXPECT_EQ(spinsFor({.nanoseconds = 1e3, .pauseNanoseconds = 20}), 1250);
  EXPECT_EQ(spinsFor({.nanoseconds = 5e6, .pauseNanoseconds = 10}), 15000);
}

}  // namespace
}  // namespace gradlink::shm
