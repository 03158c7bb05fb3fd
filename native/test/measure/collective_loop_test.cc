#include "measure/collective_loop.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "core/error.h"
#include "shm/shm.h"

namespace gradlink::measure {
namespace {

/// Passes every call on, and spoils one byte of an output of each all-reduce from `spoilFrom` on.
class SpoilingGroup : public Communicator {
 public:
  SpoilingGroup(int size, int spoilFrom)
      : inner_(shm::makeLocalGroup(size)), spoilFrom_(spoilFrom) {}
  int size() const override { return inner_->size(); }
  std::span<const int> heldRanks() const override { return inner_->heldRanks(); }
  const char* backend() const override { return inner_->backend(); }
  void allReduce(const Buffers& b, std::size_t count, DType dtype, ReduceOp op,
                 const CallOptions& o) override {
    inner_->allReduce(b, count, dtype, op, o);
    if (calls++ >= spoilFrom_) *static_cast<unsigned char*>(b.out[1]) ^= 1;
  }
  void reduce(const Buffers& b, std::size_t c, DType d, ReduceOp op, int root,
              const CallOptions& o) override {
    inner_->reduce(b, c, d, op, root, o);
  }
  void broadcast(const Buffers& b, std::size_t c, DType d, int root,
                 const CallOptions& o) override {
    inner_->broadcast(b, c, d, root, o);
  }
  void allGather(const Buffers& b, std::size_t c, DType d, const CallOptions& o) override {
    inner_->allGather(b, c, d, o);
  }
  void reduceScatter(const Buffers& b, std::size_t c, DType d, ReduceOp op,
                     const CallOptions& o) override {
    inner_->reduceScatter(b, c, d, op, o);
  }
  void allToAll(const Buffers& b, std::size_t c, DType d, const CallOptions& o) override {
    inner_->allToAll(b, c, d, o);
  }
  void gather(const Buffers& b, std::size_t c, DType d, int root, const CallOptions& o) override {
    inner_->gather(b, c, d, root, o);
  }
  void scatter(const Buffers& b, std::size_t c, DType d, int root, const CallOptions& o) override {
    inner_->scatter(b, c, d, root, o);
  }
  void barrier(const CallOptions& o) override { inner_->barrier(o); }
  void neighborAllReduce(const Buffers& b, std::size_t c, DType d, std::span<const Neighborhood> n,
                         const CallOptions& o) override {
    inner_->neighborAllReduce(b, c, d, n, o);
  }
  void send(const void* data, std::size_t c, DType d, int to, int tag,
            const CallOptions& o) override {
    inner_->send(data, c, d, to, tag, o);
  }
  Received receive(void* data, std::size_t c, DType d, int from, int tag,
                   const CallOptions& o) override {
    return inner_->receive(data, c, d, from, tag, o);
  }
  void* allocShared(std::size_t bytes) override { return inner_->allocShared(bytes); }
  void freeShared(void* memory) override { inner_->freeShared(memory); }
  std::unique_ptr<Communicator> split(int color, int key, const CallOptions& o) override {
    return inner_->split(color, key, o);
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  void close() override { inner_->close(); }

  int calls = 0;

 private:
  std::unique_ptr<Communicator> inner_;
  int spoilFrom_;
};

TEST(CollectiveLoop, EveryCollectiveIsRightInBothPlacements) {
  for (const int size : {1, 2, 3, 4, 7}) {
    const auto comm = shm::makeLocalGroup(size);
    for (int kind = 0; kind < kCollectiveCount; ++kind) {
      const auto collective = static_cast<Collective>(kind);
      // Messages are for communicators of one rank: see RanksOfAJob below.
      if (collective == Collective::sendReceive && size != 1) continue;
      for (const bool inPlace : {false, true}) {
        if (inPlace && recordOf(collective).inPlace == InPlace::none) continue;
        for (const std::size_t count : {0, 1, 1001}) {
          for (const bool shared : {false, true}) {
            const CollectiveResult result = timeCollective(*comm, {.collective = collective,
                                                                   .count = count,
                                                                   .root = size - 1,
                                                                   .inPlace = inPlace,
                                                                   .shared = shared,
                                                                   .warmup = 1,
                                                                   .samples = 3,
                                                                   .batch = 2});
            const std::string what = std::string(recordOf(collective).name) + " of " +
                                     std::to_string(size) + " ranks, count " +
                                     std::to_string(count) + (inPlace ? ", in place" : "");
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
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      for (const Collective collective : {Collective::allReduce, Collective::reduceScatter}) {
        for (const bool inPlace : {false, true}) {
          const CollectiveResult result = timeCollective(*comm, {.collective = collective,
                                                                 .count = 777,
                                                                 .dtype = static_cast<DType>(dtype),
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

TEST(CollectiveLoop, SeesAResultThatIsWrongFromTheStart) {
  SpoilingGroup group(2, 0);
  const CollectiveResult result = timeCollective(group, {.count = 64, .warmup = 1, .samples = 2});
  EXPECT_EQ(result.wrongBefore, 1u);
  EXPECT_EQ(result.wrongAfter, 1u);
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
  timeCollective(group, {.count = 8, .warmup = 3, .samples = 5, .batch = 7, .verify = false});
  EXPECT_EQ(group.calls, 3 + 5 * 7);
}

TEST(CollectiveLoop, RefusesWhatCannotBe) {
  const auto comm = shm::makeLocalGroup(2);
  for (const CollectiveOptions& options :
       {CollectiveOptions{.samples = 0}, CollectiveOptions{.batch = 0},
        CollectiveOptions{.warmup = -1}, CollectiveOptions{.root = 2},
        CollectiveOptions{.collective = Collective::allToAll, .inPlace = true}}) {
    try {
      timeCollective(*comm, options);
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalidArgument);
      EXPECT_TRUE(error.usable);
    }
  }
}

class RanksOfAJob : public testing::TestWithParam<Collective> {};

TEST_P(RanksOfAJob, GetTheSameRightSamples) {
  constexpr int kRanks = 3;
  std::vector<CollectiveResult> results(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      shm::JoinOptions join;
      join.job = "measure-test";
      join.name = "same-samples";
      join.rank = rank;
      join.size = kRanks;
      join.threads = true;
      const auto comm = shm::join(join);
      results[rank] =
          timeCollective(*comm, {.collective = GetParam(), .count = 500, .root = 1, .samples = 5});
      comm->close();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const CollectiveResult& result : results) {
    EXPECT_EQ(result.wrongBefore + result.wrongAfter, 0u);
    EXPECT_EQ(result.seconds.size(), 5u);
    EXPECT_EQ(result.seconds, results[0].seconds);
    EXPECT_EQ(result.totalSeconds, results[0].totalSeconds);
  }
}

INSTANTIATE_TEST_SUITE_P(Some, RanksOfAJob,
                         testing::Values(Collective::allReduce, Collective::gather,
                                         Collective::sendReceive),
                         [](const auto& info) { return recordOf(info.param).name; });

}  // namespace
}  // namespace gradlink::measure
