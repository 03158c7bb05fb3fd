#include "measure/collective_loop.h"

#include <numeric>
#include <utility>

#include "core/forwarding_communicator.h"
#include "test/threads_support.h"
#include "test/thrown.h"

namespace gradlink::measure {
namespace {

/// Passes every call on, and spoils one bit of these bytes of rank 1's output of each all-reduce
/// from `spoilFrom` on.
class SpoilingGroup : public ForwardingCommunicator {
 public:
  SpoilingGroup(int size, int spoilFrom, std::vector<std::size_t> bytes = {0})
      : ForwardingCommunicator(shm::makeLocalGroup(size)),
        spoilFrom_(spoilFrom),
        bytes_(std::move(bytes)) {}
  void run(const Call& call) override {
    inner().run(call);
    if (call.shape.kind != Kind::allReduce) return;
    if (calls++ < spoilFrom_) return;
    for (const std::size_t at : bytes_) static_cast<unsigned char*>(call.buffers.out[1])[at] ^= 1;
  }

  int calls = 0;

 private:
  int spoilFrom_;
  std::vector<std::size_t> bytes_;
};

TEST(CollectiveLoop, EveryCollectiveIsRightInBothPlacements) {
  for (const int size : {1, 2, 3, 4, 7}) {
    const auto comm = shm::makeLocalGroup(size);
    for (int kind = 0; kind <= kCollectiveCount; ++kind) {
      const CollectiveRecord& record =
          kind < kCollectiveCount ? recordOf(static_cast<Kind>(kind)) : ringRecord();
      // Messages are for communicators of one rank: see RanksOfAJob below.
      if (!record.kind && size != 1) continue;
      for (const bool inPlace : {false, true}) {
        if (inPlace && record.inPlace == InPlace::none) continue;
        for (const std::size_t count : {0, 1, 1001}) {
          for (const bool shared : {false, true}) {
            const CollectiveResult result = timeCollective(*comm, {.collective = &record,
                                                                   .count = count,
                                                                   .root = size - 1,
                                                                   .inPlace = inPlace,
                                                                   .shared = shared,
                                                                   .warmup = 1,
                                                                   .samples = 3,
                                                                   .batch = 2});
            const std::string what = std::string(record.name) + " of " + std::to_string(size) +
                                     " ranks, count " + std::to_string(count) +
                                     (inPlace ? ", in place" : "");
            EXPECT_EQ(result.wrongBefore, 0u) << what;
            EXPECT_EQ(result.wrongAfter, 0u) << what;
            EXPECT_EQ(result.seconds.size(), 3u);
          }
        }
      }
    }
  }
}

TEST(CollectiveLoop, EveryDTypeAndOpIsRight) {
  const auto comm = shm::makeLocalGroup(3);
  for (const DType dtype : kHostDTypes) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      for (const Kind kind : {Kind::allReduce, Kind::reduceScatter}) {
        const CollectiveRecord& record = recordOf(kind);
        for (const bool inPlace : {false, true}) {
          const CollectiveResult result = timeCollective(*comm, {.collective = &record,
                                                                 .count = 777,
                                                                 .dtype = dtype,
                                                                 .op = static_cast<ReduceOp>(op),
                                                                 .inPlace = inPlace,
                                                                 .warmup = 1,
                                                                 .samples = 2});
          EXPECT_EQ(result.wrongBefore + result.wrongAfter, 0u)
              << nameOf(static_cast<DType>(dtype)) << " " << nameOf(static_cast<ReduceOp>(op));
        }
      }
    }
  }
}

TEST(CollectiveLoop, CountsWhatIsWrongAndNamesTheFirst) {
  for (const std::size_t count : {64, 200001}) {
    for (const std::size_t at : {std::size_t{0}, count / 3, count - 1}) {
      SpoilingGroup group(3, 0, {4 * at, 4 * (count - 1) + 1});
      const CollectiveResult result =
          timeCollective(group, {.count = count, .dtype = DType::int32});
      const std::uint64_t wrong = at == count - 1 ? 1 : 2;
      EXPECT_EQ(result.wrongBefore, wrong);
      EXPECT_EQ(result.wrongAfter, wrong);
      const auto& first = result.firstWrong;
      ASSERT_TRUE(first);
      EXPECT_EQ(first->rank, 1);
      EXPECT_EQ(first->index, at);
      const std::uint64_t others = at == count - 1 ? 0x101 : 1;
      EXPECT_EQ(first->got ^ first->expected, others);
    }
  }
  SpoilingGroup right(2, 1000000);
  EXPECT_FALSE(timeCollective(right, {.count = 64}).firstWrong);
}

TEST(CollectiveLoop, SeesATimedResultThatIsWrong) {
  for (const bool inPlace : {false, true}) {
    // One call to verify, two to warm up, four samples: the last call alone is spoiled.
    SpoilingGroup group(2, 6);
    const CollectiveResult result =
        timeCollective(group, {.count = 64, .inPlace = inPlace, .warmup = 2, .samples = 4});
    EXPECT_EQ(group.calls, 7);
    EXPECT_EQ(result.wrongBefore, 0u);
    EXPECT_EQ(result.wrongAfter, 1u) << (inPlace ? "in place" : "out of place");
  }
}

TEST(CollectiveLoop, MakesTheCallsItWasAskedFor) {
  SpoilingGroup group(2, 1000000);
  const CollectiveResult result =
      timeCollective(group, {.count = 8, .warmup = 3, .samples = 5, .batch = 7, .verify = false});
  EXPECT_EQ(group.calls, 3 + 5 * 7);
  // Of one call each.
  const double sum = std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0);
  EXPECT_NEAR(result.totalSeconds, 7 * sum, 1e-12);
}

/// Passes every call on, and keeps the op of those that combine the ranks' times.
class CombiningRank : public ForwardingCommunicator {
 public:
  explicit CombiningRank(std::unique_ptr<Communicator> inner)
      : ForwardingCommunicator(std::move(inner)) {}
  void run(const Call& call) override {
    if (call.shape.dtype == DType::float64) op = call.shape.op;
    inner().run(call);
  }
  std::optional<ReduceOp> op;
};

TEST(CollectiveLoop, CombinesTheRanksTimesAsAsked) {
  test::expectNone(test::onRanksTaken(2, [](std::unique_ptr<Communicator> comm, int) {
    CombiningRank rank(std::move(comm));
    for (const auto& [combine, op] : {std::pair(Combine::own, std::optional<ReduceOp>()),
                                      {Combine::mean, ReduceOp::avg},
                                      {Combine::min, ReduceOp::min},
                                      {Combine::max, ReduceOp::max}}) {
      timeCollective(rank, {.count = 8, .samples = 1, .combine = combine});
      EXPECT_EQ(rank.op, op);
    }
  }));
}

TEST(CollectiveLoop, RefusesWhatCannotBe) {
  const auto comm = shm::makeLocalGroup(2);
  for (const CollectiveOptions& options :
       {CollectiveOptions{.samples = 0}, CollectiveOptions{.batch = 0},
        CollectiveOptions{.warmup = -1}, CollectiveOptions{.root = 2},
        CollectiveOptions{.collective = &recordOf(Kind::allToAll), .inPlace = true}}) {
    test::expectMisuse([&] { timeCollective(*comm, options); });
  }
}

TEST(CollectiveLoop, KnowsItsRecordsByName) {
  for (int kind = 0; kind < kCollectiveCount; ++kind) {
    const CollectiveRecord& record = recordOf(static_cast<Kind>(kind));
    EXPECT_EQ(record.kind, static_cast<Kind>(kind));
    EXPECT_STREQ(record.name, nameOf(static_cast<Kind>(kind)));
    EXPECT_EQ(&recordNamed(record.name), &record);
  }
  EXPECT_EQ(&recordNamed("sendReceive"), &ringRecord());
  EXPECT_THROW(recordNamed("neighborAllReduce"), Error);
}

class RanksOfAJob : public testing::TestWithParam<const char*> {};

TEST_P(RanksOfAJob, GetTheSameRightSamples) {
  constexpr int kRanks = 3;
  std::vector<CollectiveResult> results(kRanks);
  test::expectNone(test::onRanks(kRanks, [&](Communicator& comm, int rank) {
    results[static_cast<std::size_t>(rank)] = timeCollective(
        comm, {.collective = &recordNamed(GetParam()), .count = 500, .root = 1, .samples = 5});
  }));
  for (const CollectiveResult& result : results) {
    EXPECT_EQ(result.wrongBefore + result.wrongAfter, 0u);
    EXPECT_EQ(result.seconds.size(), 5u);
    EXPECT_EQ(result.seconds, results[0].seconds);
    EXPECT_EQ(result.totalSeconds, results[0].totalSeconds);
  }
}

INSTANTIATE_TEST_SUITE_P(Some, RanksOfAJob, testing::Values("allReduce", "gather", "sendReceive"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gradlink::measure
