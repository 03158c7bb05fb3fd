#include "measure/between_cores.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/threads_support.h"
#include "test/thrown.h"

namespace gradlink::measure {
namespace {

constexpr auto kPut = static_cast<std::size_t>(Crossing::put);
constexpr auto kGet = static_cast<std::size_t>(Crossing::get);
constexpr auto kPutAlone = static_cast<std::size_t>(Crossing::putAlone);
constexpr auto kGetAlone = static_cast<std::size_t>(Crossing::getAlone);

std::vector<BetweenCores> timeRanks(int size, const BetweenCoresOptions& options) {
  std::vector<BetweenCores> results(static_cast<std::size_t>(size));
  test::expectNone(test::onRanks(size, [&](Communicator& comm, int rank) {
    results[static_cast<std::size_t>(rank)] = timeBetweenCores(comm, options);
  }));
  return results;
}

TEST(BetweenCores, WhatIsReadIsWhatTheOtherCoreWrote) {
  for (const int size : {2, 3, 4}) {
    for (int distance = 1; distance < size; ++distance) {
      const auto results =
          timeRanks(size, {.bytes = 5000, .distance = distance, .warmup = 0, .samples = 2});
      for (int rank = 0; rank < size; ++rank) {
        const BetweenCores& one = results[static_cast<std::size_t>(rank)];
        const std::string what = std::to_string(size) + " ranks, distance " +
                                 std::to_string(distance) + ", rank " + std::to_string(rank);
        EXPECT_EQ(one.bytes, 5056u) << what;
        EXPECT_EQ(one.wrong, 0u) << what;
        for (const CrossingSeconds& seconds : {one.plain, one.streaming}) {
          EXPECT_GT(seconds[kPut], 0) << what;
          EXPECT_GT(seconds[kGet], 0) << what;
          EXPECT_EQ(seconds[kPutAlone] > 0, rank == 0) << what;
          EXPECT_EQ(seconds[kGetAlone] > 0, rank == distance) << what;
        }
      }
    }
  }
}

TEST(BetweenCores, AnArrayIsAtLeastALine) {
  for (const BetweenCores& one : timeRanks(2, {.bytes = 0, .samples = 1})) {
    EXPECT_EQ(one.bytes, 64u);
    EXPECT_EQ(one.wrong, 0u);
  }
}

TEST(BetweenCores, RefusesWhatCannotBe) {
  const auto comm = shm::makeLocalGroup(2);
  for (const BetweenCoresOptions& options :
       {BetweenCoresOptions{.samples = 0}, BetweenCoresOptions{.warmup = -1},
        BetweenCoresOptions{.distance = 2}, BetweenCoresOptions{.distance = 0}}) {
    test::expectMisuse([&] { timeBetweenCores(*comm, options); });
  }
}

}  // namespace
}  // namespace gradlink::measure
