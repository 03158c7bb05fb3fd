// What cores reach: alone, between one another, and of the memory.
#include <sched.h>

#include "measure/between_cores.h"
#include "measure/core_rates.h"
#include "measure/memory_bandwidth.h"
#include "test/threads_support.h"
#include "test/thrown.h"

namespace gradlink::measure {
namespace {

std::vector<int> ownCores() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(CoreRates, AreOfEachCoreAndRound) {
  const std::vector<int> cores = ownCores();
  const CoreRates rates = coreRates({.cores = cores, .rounds = 3, .roundSeconds = 0.001});
  ASSERT_EQ(rates.stepsPerSecond.size(), 3 * cores.size());
  ASSERT_EQ(rates.shares.size(), 3 * cores.size());
  for (const double rate : rates.stepsPerSecond) EXPECT_GT(rate, 0);
  for (const double share : rates.shares) {
    EXPECT_GT(share, 0);
    EXPECT_LE(share, 1.01);
  }
}

TEST(CoreRates, OfTwoThreadsOnOneCoreEachHasAPart) {
  const int core = ownCores().front();
  const CoreRates rates = coreRates({.cores = {core, core}, .rounds = 20, .roundSeconds = 0.02});
  double together = 0;
  for (const double share : rates.shares) together += share / 20;
  // Of the one core; a machine with other load gives less.
  EXPECT_LE(together, 1.2);
}

TEST(CoreRates, RefusesWhatCannotBe) {
  for (const CoreRatesOptions& options :
       {CoreRatesOptions{.cores = {}}, CoreRatesOptions{.cores = {CPU_SETSIZE}},
        CoreRatesOptions{.cores = {CPU_SETSIZE - 1}}, CoreRatesOptions{.cores = {0}, .rounds = 0},
        CoreRatesOptions{.cores = {0}, .roundSeconds = 0}}) {
    EXPECT_EQ(test::codeOf([&] { coreRates(options); }), ErrorCode::invalidArgument);
  }
}

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

TEST(MemoryBandwidth, RoundsDownToWholeLinesOfEachThread) {
  const MemoryBandwidth result = memoryBandwidth({.bytes = 1000, .threads = 3, .samples = 1});
  EXPECT_EQ(result.bytes, 2 * 3 * 320);
  EXPECT_EQ(memoryBandwidth({.bytes = 0, .threads = 2, .samples = 1}).bytes, 2 * 2 * 64);
}

TEST(MemoryBandwidth, StreamsLargeResults) {
  const MemoryBandwidth result = memoryBandwidth({.loop = MemoryLoop::reduceOutOfPlace,
                                                  .bytes = std::size_t{16} << 20,
                                                  .arrays = 2,
                                                  .warmup = 0,
                                                  .samples = 1});
  EXPECT_EQ(result.bytes, 4.0 * (std::size_t{16} << 20));
}

TEST(MemoryBandwidth, RefusesCountsBelowOne) {
  for (const MemoryBandwidthOptions& options :
       {MemoryBandwidthOptions{.bytes = 64, .threads = 0},
        MemoryBandwidthOptions{.bytes = 64, .samples = 0},
        MemoryBandwidthOptions{.bytes = 64, .arrays = 0},
        MemoryBandwidthOptions{.bytes = 64, .repeats = 0}}) {
    test::expectMisuse([&] { memoryBandwidth(options); });
  }
}

TEST(MemoryBandwidth, SaysThatTheMemoryIsNotThere) {
  test::messageOf(ErrorCode::outOfMemory, [] { memoryBandwidth({.bytes = std::size_t{1} << 60}); });
}

}  // namespace
}  // namespace gradlink::measure
