// How many calls reach the engine when small sums go together.
#include <numeric>

#include "core/forwarding_communicator.h"
#include "core/fusion.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kMost = 4096;

/// Counts the elements of each sum.
class Counting final : public ForwardingCommunicator {
 public:
  explicit Counting(std::unique_ptr<Communicator> inner)
      : ForwardingCommunicator(std::move(inner)) {}

  std::vector<std::size_t> counts;
  std::vector<std::size_t> neighborCounts;

 protected:
  void run(const Call& call) override {
    if (call.shape.kind == Kind::neighborAllReduce) {
      neighborCounts.push_back(call.shape.count);
    } else if (call.shape.op != ReduceOp::min) {  // not the agreement
      counts.push_back(call.shape.count);
    }
    ForwardingCommunicator::run(call);
  }
};

/// Sums of arrays of one rank.
struct Sums {
  Sums(std::initializer_list<std::size_t> lengths, int rank) {
    for (const std::size_t length : lengths) {
      arrays.emplace_back(length);
      std::iota(arrays.back().begin(), arrays.back().end(), static_cast<float>(100 * rank));
    }
  }
  FusedCall call(std::size_t i) {
    FusedCall made{.in = {arrays[i].data()}, .out = {arrays[i].data()}, .count = arrays[i].size()};
    return made;
  }
  void expectSums(int size) const {
    const float ranks = 100 * static_cast<float>(size * (size - 1) / 2);
    for (const auto& array : arrays) {
      for (std::size_t i = 0; i < array.size(); ++i)
        ASSERT_EQ(array[i], ranks + static_cast<float>(size) * static_cast<float>(i));
    }
  }

  std::vector<std::vector<float>> arrays;
};

using Entries = std::vector<std::shared_ptr<Fusion::Entry>>;

Entries addAll(Fusion& fusion, Sums& sums, std::size_t from, std::size_t to) {
  Entries entries;
  for (std::size_t i = from; i < to; ++i)
    entries.push_back(fusion.add(sums.call(i), fusion.segment()));
  return entries;
}

void finishAll(Fusion& fusion, Communicator& communicator, const Entries& entries) {
  for (const auto& entry : entries) fusion.finish(communicator, *entry);
}

/// On each of `size` ranks, of which each has sums of these lengths.
void fuse(int size, std::initializer_list<std::size_t> lengths,
          const std::function<void(Counting&, Fusion&, Sums&)>& body) {
  expectNone(onRanksTaken(size, [&](std::unique_ptr<Communicator> comm, int rank) {
    Counting counting(std::move(comm));
    Fusion fusion;
    fusion.setLimits(kMost, {});
    Sums sums(lengths, rank);
    body(counting, fusion, sums);
  }));
}

TEST(Fusion, PacksUpToItsThreshold) {
  fuse(3, {1, 7, 500, 500, 20, 3, 1000, 9}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    finishAll(fusion, counting, addAll(fusion, sums, 0, sums.arrays.size()));
    sums.expectSums(3);
    // 4096 bytes are 1024 floats.
    EXPECT_EQ(counting.counts, (std::vector<std::size_t>{1008, 1023, 9}));
  });
}

TEST(Fusion, TakesWhatAllRanksHaveIssued) {
  fuse(2, {1, 2, 3, 4, 5}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    if (counting.heldRanks()[0] == 0) {
      finishAll(fusion, counting, addAll(fusion, sums, 0, 5));
    } else {
      finishAll(fusion, counting, addAll(fusion, sums, 0, 2));
      finishAll(fusion, counting, addAll(fusion, sums, 2, 5));
    }
    sums.expectSums(2);
    EXPECT_EQ(counting.counts, (std::vector<std::size_t>{3, 12}));
  });
}

TEST(Fusion, EndsARowAtOtherOperationsAndOtherTypes) {
  fuse(2, {1, 2, 3, 4}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    Entries entries = addAll(fusion, sums, 0, 2);
    fusion.boundary();
    for (const auto& entry : addAll(fusion, sums, 2, 4)) entries.push_back(entry);
    std::vector<double> other(6, 1);
    FusedCall doubles{.in = {other.data()},
                      .out = {other.data()},
                      .count = other.size(),
                      .dtype = DType::float64};
    entries.push_back(fusion.add(doubles, fusion.segment()));
    finishAll(fusion, counting, entries);
    sums.expectSums(2);
    EXPECT_EQ(other, std::vector<double>(6, 2));
    EXPECT_EQ(counting.counts, (std::vector<std::size_t>{3, 7, 6}));
  });
}

TEST(Fusion, PacksAveragesWithTheSameNeighbors) {
  fuse(2, {3, 4, 5, 6}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    const int rank = counting.heldRanks()[0];
    Entries entries;
    for (std::size_t i = 0; i < 4; ++i) {
      FusedCall call = sums.call(i);
      // The last two with another weight, and the last with another divisor.
      const double weight = i >= 2 ? 2 : 1;
      call.neighborhoods = {{1, {{1 - rank, weight}}, {{1 - rank, 1}}}};
      if (i == 3) call.neighborhoods[0].divisor = 2;
      entries.push_back(fusion.add(call, fusion.segment()));
    }
    finishAll(fusion, counting, entries);
    EXPECT_EQ(counting.neighborCounts, (std::vector<std::size_t>{7, 5, 6}));
    EXPECT_EQ(sums.arrays[1][1], 102);
    EXPECT_EQ(sums.arrays[2][0], rank == 0 ? 200 : 100);
  });
}

TEST(Fusion, WaitsForMoreUntilTheRowIsFullOrAnotherOperationComes) {
  fuse(2, {kMost / sizeof(float), 1}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    fusion.setLimits(kMost, std::chrono::hours(1));
    finishAll(fusion, counting, addAll(fusion, sums, 0, 1));
    const Entries last = addAll(fusion, sums, 1, 2);
    std::atomic<bool> over{false};
    std::jthread other([&] {
      while (!over) fusion.boundary();
    });
    finishAll(fusion, counting, last);
    over = true;
    sums.expectSums(2);
  });
}

TEST(Fusion, LeavesOutWhatWasDropped) {
  fuse(2, {2, 3, 4}, [](Counting& counting, Fusion& fusion, Sums& sums) {
    FusedCall dropped;
    float untouched = 7;
    dropped.in = {&untouched};
    dropped.out = {&untouched};
    dropped.count = 1;
    dropped.begin = [] { return false; };
    Entries entries = addAll(fusion, sums, 0, 2);
    const auto gone = fusion.add(dropped, fusion.segment());
    for (const auto& entry : addAll(fusion, sums, 2, 3)) entries.push_back(entry);
    finishAll(fusion, counting, entries);
    sums.expectSums(2);
    EXPECT_EQ(untouched, 7);
    EXPECT_EQ(counting.counts, (std::vector<std::size_t>{9}));
    EXPECT_THROW(fusion.finish(counting, *gone), Error);
  });
}

}  // namespace
}  // namespace gradlink::test
