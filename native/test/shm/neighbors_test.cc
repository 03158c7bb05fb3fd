// Exchanges with some of the ranks, and averages with them.
#include "test/threads_support.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

/// What element i of rank r is.
float valueOf(int rank, std::size_t i) {
  return static_cast<float>(100 * rank) + static_cast<float>(i % 64);
}

std::vector<float> ownValues(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = valueOf(rank, i);
  return values;
}

const Places kOnTheHost = onTheHost({});

TEST(NeighborAllGather, PutsWhatSourcesSendOneAfterTheOther) {
  for (const int size : {1, 2, 3, 4, 7}) {
    expectNone(onRanks(size, [](Communicator& comm, int /*rank*/) {
      EXPECT_EQ(neighborsGather(comm, kOnTheHost), "") << comm.size() << " ranks";
    }));
  }
}

struct Disagreement {
  const char* names[2];
  // Of rank 1 in a ring of three.
  std::size_t count = 4;
  DType dtype = DType::float32;
  std::size_t expected = 4;
  bool hears = true;
  bool sends = true;
};

TEST(NeighborAllGather, DisagreesInTheSameWordsOnEveryRank) {
  const Disagreement cases[] = {
      {{"sends 3", "expects 4"}, 3},
      {{"int32", "float32"}, 4, DType::int32},
      {{"sends 4", "expects 5"}, 4, DType::float32, 5},
      {{"rank 0", "first names"}, 4, DType::float32, 4, false},
      {{"rank 2", "second names"}, 4, DType::float32, 4, true, false},
  };
  for (const Disagreement& c : cases) {
    const auto errors = onRanks(3, [&](Communicator& comm, int rank) {
      const bool odd = rank == 1;
      std::vector<std::int32_t> in(8, 1);
      std::vector<std::int32_t> out(8, 7);
      std::vector<NeighborBlock> sources{{(rank + 2) % 3, odd ? c.expected : 4}};
      std::vector<int> destinations{(rank + 1) % 3};
      if (odd && !c.hears) sources.clear();
      if (odd && !c.sends) destinations.clear();
      const auto error = errorOf([&] {
        comm.neighborAllGather(in.data(), odd ? c.count : 4, odd ? c.dtype : DType::float32,
                               out.data(), sources, destinations, {});
      });
      EXPECT_EQ(out, std::vector<std::int32_t>(8, 7)) << "something was sent";
      EXPECT_EQ(neighborsGather(comm, kOnTheHost), "");
      if (error) throw *error;
    });
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) {
      EXPECT_STREQ(error->what(), errors[0]->what());
      EXPECT_EQ(lacking(error->what(), {c.names[0], c.names[1]}), "") << error->what();
    }
  }
}

TEST(NeighborAllGather, RefusesRanksThatAreNone) {
  expectNone(onRanks(1, [&](Communicator& comm, int /*rank*/) {
    float value = 0;
    for (const int peer : {-1, 0, 1}) {
      const NeighborBlock source[] = {{peer, 1}};
      EXPECT_THROW(comm.neighborAllGather(&value, 1, DType::float32, &value, source, {}, {}),
                   Error);
      const int destination[] = {peer};
      EXPECT_THROW(comm.neighborAllGather(&value, 1, DType::float32, &value, {}, destination, {}),
                   Error);
    }
  }));
}

/// Rank 0 names 1 as a source, which does not name it.
std::vector<std::optional<Error>> oneSided(int size, std::size_t count, bool check) {
  return onRanks(size, [&](Communicator& comm, int rank) {
    std::vector<float> data(count, static_cast<float>(rank + 1));
    const void* const in[] = {data.data()};
    void* const out[] = {data.data()};
    Neighborhood own{0.5, {}, {}, check && rank == size - 1};
    if (rank == 0) own.sources = {{1, 0.5}};
    comm.neighborAllReduce({in, out}, count, DType::float32, {&own, 1});
    EXPECT_EQ(data.back(), rank == 0 ? 1.5f : 0.5f * static_cast<float>(rank + 1));
  });
}

TEST(NeighborAllReduce, ComparesListsWhereAnyRankWantsIt) {
  for (const std::size_t count : {10, 100000}) {
    const auto errors = oneSided(3, count, true);
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) EXPECT_STREQ(error->what(), errors[0]->what());
    expectNone(oneSided(3, count, false));
  }
}

TEST(PairGossip, AveragesTwoRanksAndLeavesTheOthersAlone) {
  expectNone(onRanks(3, [&](Communicator& comm, int rank) {
    if (rank == 1) return;
    for (const std::size_t count : {0, 3, 100000}) {
      const std::vector<float> mine = ownValues(rank, count);
      std::vector<float> got(count);
      // Each with weights of its own.
      const double own = rank == 0 ? 0.5 : 0.25;
      comm.pairGossip(mine.data(), got.data(), count, DType::float32, 2 - rank, own, 1 - own, {});
      for (std::size_t i = 0; i < count; ++i) {
        const float want = static_cast<float>(own) * valueOf(rank, i) +
                           static_cast<float>(1 - own) * valueOf(2 - rank, i);
        ASSERT_EQ(got[i], want) << "element " << i;
      }
    }
  }));
}

TEST(PairGossip, InPlaceKeepsTinyWeights) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    double value = rank == 0 ? 1 : 0x1p-200;
    comm.pairGossip(&value, &value, 1, DType::float64, 1 - rank, 0x1p-56, 1, {});
    EXPECT_EQ(value, rank == 0 ? 0x1p-56 + 0x1p-200 : 0x1p-256 + 1);
  }));
}

TEST(PairGossip, OfOtherLengthsIsAMismatch) {
  const auto errors = onRanks(2, [&](Communicator& comm, int rank) {
    std::vector<float> data(10, 1);
    // The longer one receives less than it has.
    comm.pairGossip(data.data(), data.data(), rank == 0 ? 4 : 10, DType::float32, 1 - rank, 0.5,
                    0.5, {});
  });
  expectAll(errors, ErrorCode::mismatch);
}

TEST(PairGossip, RoundsIntegersToTheEvenOne) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    std::int32_t values[] = {rank, 3 * rank};
    comm.pairGossip(values, values, 2, DType::int32, 1 - rank, 0.5, 0.5, {});
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[1], 2);
  }));
}

TEST(PairGossip, NeedsAnotherRank) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    float value = 1;
    EXPECT_THROW(comm.pairGossip(&value, &value, 1, DType::float32, rank, 0.5, 0.5, {}), Error);
    EXPECT_THROW(comm.pairGossip(&value, &value, 1, DType::float32, 2, 0.5, 0.5, {}), Error);
  }));
}

}  // namespace
}  // namespace gradlink::test
