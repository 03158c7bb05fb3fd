#include "core/kernels/store_style.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/direct.h"
#include "test/reference.h"

namespace gradlink {
namespace {

/// A machine on which a writing costs what `plain` and `streaming` say.
struct Machine {
  float plain;
  float streaming;
  double spent = 0;
  int streamed = 0;

  void write(StoreStyle& style, int times) {
    for (int i = 0; i < times; ++i) {
      const bool streams = style.streaming();
      const bool measured = style.measured();
      const float cost = streams ? streaming : plain;
      spent += cost;
      streamed += streams;
      style.advance();
      if (measured) style.record(streams, cost);
    }
  }
};

TEST(StoreStyle, TakesTheCheaperAndProbesAtABoundedCost) {
  for (const bool streamingWins : {false, true}) {
    for (const float ratio : {1.3f, 2.f, 12.f}) {
      StoreStyle style;
      Machine machine{streamingWins ? ratio : 1, streamingWins ? 1 : ratio};
      machine.write(style, 100);  // learn
      machine.spent = 0;
      machine.streamed = 0;
      constexpr int kTimes = 100000;
      machine.write(style, kTimes);
      EXPECT_LT(machine.spent, 1.03 * kTimes) << ratio;
      EXPECT_GT(machine.streamed, 0) << "never looked at the other";
      EXPECT_LT(machine.streamed, kTimes);
    }
  }
}

TEST(StoreStyle, FollowsTheMachine) {
  StoreStyle style;
  Machine{1, 2}.write(style, 1000);
  EXPECT_FALSE(style.streaming());
  // The cores were moved apart: what is in use has become slow, which shows at once.
  Machine apart{20, 1.5};
  apart.write(style, 200);
  EXPECT_GT(apart.streamed, 150);
  // And together again, which only a probe can show.
  Machine together{1, 2};
  together.write(style, 10000);
  EXPECT_LT(together.streamed, 5000);
}

TEST(StoreStyle, OneInterruptionChangesNothing) {
  StoreStyle style;
  Machine machine{1, 3};
  machine.write(style, 1000);
  style.record(false, 5000);
  style.record(true, 5000);
  machine.streamed = 0;
  machine.write(style, 100);
  EXPECT_LT(machine.streamed, 10);
}

TEST(StoreStyle, EqualStylesStayAsTheyAre) {
  StoreStyle style;
  Machine machine{1, 1};
  machine.write(style, 10000);
  EXPECT_LT(machine.streamed, 2000);
}

// Whichever it is, at a bounded cost, and none is forgotten.
TEST(MeasuredChoice, TakesTheCheapestOfSeveralWays) {
  for (int cheapest = 0; cheapest < MeasuredChoice::kMostWays; ++cheapest) {
    MeasuredChoice choice(MeasuredChoice::kMostWays);
    std::array<int, MeasuredChoice::kMostWays> times{};
    double spent = 0;
    constexpr int kTimes = 100000;
    const auto work = [&] {
      const int way = choice.way();
      const float cost = way == cheapest ? 1.f : 1.5f + static_cast<float>(way);
      const bool measured = choice.measured();
      spent += cost;
      ++times[static_cast<std::size_t>(way)];
      choice.advance();
      if (measured) choice.record(way, cost);
    };
    for (int i = 0; i < 100; ++i) work();
    EXPECT_EQ(choice.chosen(), cheapest);
    spent = 0;
    for (int i = 0; i < kTimes; ++i) work();
    EXPECT_LT(spent, 1.03 * kTimes);
    EXPECT_GT(*std::min_element(times.begin(), times.end()), 10);
  }
}

TEST(ResultStores, HaveTheSameResultsPastTheCachesAndPlainly) {
  constexpr int kRanks = 2;
  constexpr std::size_t kElements = (16 << 10) + 3;  // long enough to be timed
  const std::vector<WeightRow> weights = {{{{0, 0.5}, {1, 0.25}}}, {{{0, 2}, {1, 3}}}};
  std::vector<reference::Bytes> inputs;
  for (std::uint32_t r = 0; r < kRanks; ++r)
    inputs.push_back(reference::randomArray(kRanks * kElements, DType::float32, r));
  for (const Kind kind : {Kind::allReduce, Kind::reduceScatter, Kind::broadcast, Kind::allGather,
                          Kind::allToAll, Kind::scan, Kind::neighborAllReduce}) {
    // Part of a call whose results no cache holds.
    const Shape shape{.kind = kind, .dtype = DType::float32, .count = std::uint64_t{1} << 32};
    const auto run = [&](const ResultStores& results) {
      std::vector<reference::Bytes> outputs(
          kRanks, reference::Bytes(kRanks * kElements * sizeof(float), 0xa5));
      InView in[kRanks];
      OutView out[kRanks];
      for (int r = 0; r < kRanks; ++r) {
        in[r] = {reinterpret_cast<const std::byte*>(inputs[r].data()), kElements, 0};
        out[r] = {reinterpret_cast<std::byte*>(outputs[r].data()), kElements, 0};
      }
      runDirect({shape, in, out, weights, results}, 0, kElements);
      return outputs;
    };
    const auto wanted = run({});
    const ResultStores measured = resultStores(shape, kRanks, false);
    EXPECT_FALSE(measured.isPlain());
    // The first calls try both.
    for (int time = 0; time < 8; ++time) EXPECT_TRUE(run(measured) == wanted) << nameOf(kind);
  }
}

TEST(ResultStores, ArePlainForResultsThatStayCachedAndInPlace) {
  Shape shape{.kind = Kind::allReduce, .dtype = DType::float32, .count = 1 << 18};
  EXPECT_TRUE(resultStores(shape, 2, false).isPlain());
  shape.count = std::uint64_t{1} << 32;
  EXPECT_TRUE(resultStores(shape, 2, true).isPlain());
}

}  // namespace
}  // namespace gradlink
