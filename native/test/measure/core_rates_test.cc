#include "measure/core_rates.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "test/message_support.h"

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

}  // namespace
}  // namespace gradlink::measure
