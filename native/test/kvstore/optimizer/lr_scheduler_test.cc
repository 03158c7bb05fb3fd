// Schedules against the C library's pow and cos, and their edges.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "kvstore/optimizer/lr_scheduler.h"

namespace gradlink {
namespace {

TEST(LrScheduler, FactorDropsAfterEachPeriodDownToItsFloor) {
  SchedulerSpec spec{.baseLr = 1, .steps = {10}, .factor = 0.5, .stopFactorLr = 0.2};
  EXPECT_EQ(learningRateAt(spec, 0), 1);
  EXPECT_EQ(learningRateAt(spec, 10), 1);
  EXPECT_EQ(learningRateAt(spec, 11), 0.5);
  EXPECT_EQ(learningRateAt(spec, 20), 0.5);
  EXPECT_EQ(learningRateAt(spec, 21), 0.25);
  EXPECT_EQ(learningRateAt(spec, 31), 0.2);
  EXPECT_EQ(learningRateAt(spec, 1'000'000'000'000), 0.2);
}

TEST(LrScheduler, MultiFactorDropsAfterEachListedUpdate) {
  SchedulerSpec spec{
      .kind = SchedulerKind::multiFactor, .baseLr = 8, .steps = {5, 7}, .factor = 0.5};
  EXPECT_EQ(learningRateAt(spec, 5), 8);
  EXPECT_EQ(learningRateAt(spec, 6), 4);
  EXPECT_EQ(learningRateAt(spec, 7), 4);
  EXPECT_EQ(learningRateAt(spec, 8), 2);
}

TEST(LrScheduler, PolyAndCosineFollowTheirFormulas) {
  SchedulerSpec spec{
      .baseLr = 0.4, .warmupSteps = 100, .warmupBeginLr = 0.1, .maxUpdate = 1000, .finalLr = 0.01};
  for (const double power : {1.0, 2.0, 0.5, 0.9, 3.7}) {
    spec.kind = SchedulerKind::poly;
    spec.power = power;
    for (std::int64_t n = 100; n <= 1000; ++n) {
      const double expected = 0.01 + 0.39 * std::pow(1 - (n - 100) / 900.0, power);
      ASSERT_NEAR(learningRateAt(spec, n), expected, 1e-15 * 4) << power << " " << n;
    }
    EXPECT_EQ(learningRateAt(spec, 1000), 0.01);
    EXPECT_EQ(learningRateAt(spec, 5000), 0.01);
  }
  spec.kind = SchedulerKind::cosine;
  for (std::int64_t n = 100; n <= 1000; ++n) {
    const double expected =
        0.01 + 0.39 * (1 + std::cos(std::numbers::pi * static_cast<double>(n - 100) / 900)) / 2;
    ASSERT_NEAR(learningRateAt(spec, n), expected, 1e-15 * 4) << n;
  }
  EXPECT_EQ(learningRateAt(spec, 100), 0.4);
  EXPECT_EQ(learningRateAt(spec, 1000), 0.01);
  EXPECT_EQ(learningRateAt(spec, 1001), 0.01);
}

TEST(LrScheduler, ATableHoldsEachRateUntilTheNext) {
  SchedulerSpec spec{.kind = SchedulerKind::table, .baseLr = 3, .steps = {2, 5}, .rates = {0.5, 8}};
  EXPECT_NO_THROW(checkScheduler(spec));
  const std::vector<double> expected = {3, 3, 0.5, 0.5, 0.5, 8, 8};
  for (std::size_t n = 0; n < expected.size(); ++n) {
    EXPECT_EQ(learningRateAt(spec, static_cast<std::int64_t>(n)), expected[n]) << n;
  }
  spec.rates.pop_back();
  EXPECT_THROW(checkScheduler(spec), Error);
}

TEST(LrScheduler, WarmsUp) {
  SchedulerSpec spec{
      .baseLr = 1, .warmupSteps = 4, .warmupBeginLr = 0.2, .warmupFinalLr = 2, .steps = {100}};
  EXPECT_EQ(learningRateAt(spec, 0), 0.2);
  EXPECT_EQ(learningRateAt(spec, 1), 0.2 + (2 - 0.2) * 1 / 4);
  EXPECT_EQ(learningRateAt(spec, 4), 1);
  spec.warmupMode = WarmupMode::constant;
  EXPECT_EQ(learningRateAt(spec, 3), 0.2);
}

TEST(LrScheduler, RefusesWhatMakesNoSense) {
  const auto rejected = [](auto change) {
    SchedulerSpec spec;
    spec.steps = {1};
    EXPECT_NO_THROW(checkScheduler(spec));
    change(spec);
    EXPECT_THROW(checkScheduler(spec), Error);
  };
  rejected([](SchedulerSpec& s) { s.steps = {0}; });
  rejected([](SchedulerSpec& s) { s.steps = {}; });
  rejected([](SchedulerSpec& s) { s.steps = {1, 2}; });
  rejected([](SchedulerSpec& s) { s.factor = 1.5; });
  rejected([](SchedulerSpec& s) { s.factor = 0; });
  rejected([](SchedulerSpec& s) { s.baseLr = std::nan(""); });
  rejected([](SchedulerSpec& s) { s.warmupFinalLr = std::nan(""); });
  rejected([](SchedulerSpec& s) { s.warmupSteps = -1; });
  rejected([](SchedulerSpec& s) { s.warmupSteps = 1, s.warmupBeginLr = 1; });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::multiFactor, s.steps = {3, 3}; });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::poly, s.maxUpdate = 0; });
  rejected([](SchedulerSpec& s) { s.kind = SchedulerKind::poly, s.maxUpdate = 5, s.power = 0; });
  rejected(
      [](SchedulerSpec& s) { s.kind = SchedulerKind::cosine, s.maxUpdate = 5, s.warmupSteps = 5; });
}

}  // namespace
}  // namespace gradlink
