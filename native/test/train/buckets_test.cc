// Gradients in buckets: what they hold and when they are complete, and the hooks over ranks that
// are threads.
#include "test/threads_support.h"
#include "train/gradient_buckets.h"

namespace gradlink::test {
namespace {

/// Buckets with their memory.
struct Held {
  std::vector<std::vector<float>> memory;
  std::vector<std::byte> scratch;
  std::unique_ptr<GradientBuckets> buckets;

  Held(const std::vector<std::size_t>& counts, const std::vector<GradientSlot>& slots,
       const BucketHookSpec& spec = {}, int ranks = 1, ReduceOp op = ReduceOp::avg) {
    std::vector<std::span<float>> spans;
    for (const std::size_t count : counts) memory.emplace_back(count, -77.0F);
    for (auto& bucket : memory) spans.emplace_back(bucket);
    auto hook = BucketHook::create(spec, op, counts, slots, ranks);
    scratch.resize(hook->scratchBytes());
    buckets = std::make_unique<GradientBuckets>(spans, slots, std::move(hook));
  }

  /// One pass of the first of so many slots.
  void pass(const std::vector<float>& data, Communicator& communicator,
            BucketResult result = BucketResult::whole) {
    buckets->begin(std::vector<std::uint32_t>{1}, 1, true, result);
    run(buckets->add(0, data), communicator);
    buckets->flush();
    static_cast<void>(buckets->times());
  }
  /// Hands over and reduces at once.
  void run(GradientBuckets::Range range, Communicator& communicator) {
    for (std::size_t bucket = range.first; bucket < range.last; ++bucket) {
      buckets->reduce(bucket, scratch.data(), communicator, {});
    }
  }
};

const std::vector<std::size_t> kCounts{5, 4};
const std::vector<GradientSlot> kSlots{{1, 0, 1, 4}, {0, 2, 1, 3}, {0, 0, 1, 2}};
const std::vector<float> kFour{1, 2, 3, 4};
const std::vector<float> kThree{10, 20, 30};
const std::vector<float> kTwo{100, 200};
const std::vector<std::uint32_t> kOnce{1, 1, 1};

TEST(GradientBuckets, OfAnotherLengthAreRefused) {
  Held held(kCounts, kSlots);
  held.buckets->begin(kOnce, 1, true);
  EXPECT_THROW(held.buckets->add(0, kThree), Error);
}

TEST(GradientBuckets, PartsAddUpAndWhatIsMissingIsZero) {
  Held held(kCounts, kSlots);
  // Gradient 0 unused and known to be; 1 used twice; 2 announced and never there.
  const std::vector<std::uint32_t> uses{0, 2, 1};
  EXPECT_EQ(held.buckets->begin(uses, 0.5F, true).last, 0U);
  held.buckets->add(1, kThree);
  held.buckets->add(1, kThree);
  EXPECT_EQ(held.buckets->flush().last, 2U);
  EXPECT_EQ(held.memory[0], (std::vector<float>{0, 0, 10, 20, 30}));
  EXPECT_EQ(held.memory[1], (std::vector<float>{0, 0, 0, 0}));
}

TEST(GradientBuckets, PassesThatDoNotReduceAccumulate) {
  Held held(kCounts, kSlots);
  const std::vector<std::uint32_t> first{1, 0, 1};
  EXPECT_EQ(held.buckets->begin(first, 1, false).last, 0U);
  EXPECT_EQ(held.buckets->add(0, kFour).last, 0U);
  held.buckets->add(2, kTwo);
  const std::vector<std::uint32_t> second{1, 0, 0};
  // Bucket 0 is complete: 1 was never used, and 2 is not in this pass.
  EXPECT_EQ(held.buckets->begin(second, 1, true).last, 1U);
  EXPECT_EQ(held.buckets->add(0, kFour).last, 2U);
  held.buckets->flush();
  EXPECT_EQ(held.memory[0], (std::vector<float>{100, 200, 0, 0, 0}));
  EXPECT_EQ(held.memory[1], (std::vector<float>{2, 4, 6, 8}));
  // What was reduced is overwritten.
  held.buckets->begin(second, 1, true);
  held.buckets->add(0, kFour);
  EXPECT_EQ(held.memory[1], kFour);
  EXPECT_EQ(held.memory[0], (std::vector<float>{0, 0, 0, 0, 0}));
}

TEST(GradientBuckets, MayBeComputedInTheirPlaces) {
  Held held(kCounts, kSlots);
  held.buckets->begin(kOnce, 1, true);
  std::ranges::copy(kFour, held.memory[1].begin());
  held.buckets->add(0, held.memory[1]);
  held.buckets->add(1, kThree);
  EXPECT_EQ(held.buckets->add(2, kTwo).last, 2U);
  EXPECT_EQ(held.memory[1], kFour);
}

/// What rank's gradient holds at i: small integers, so that halves of sums are exact.
float valueOf(int rank, std::size_t i) { return static_cast<float>((rank + 1) * (i % 13)); }

const BucketHookSpec kPowerSgd{.type = "powersgd", .startPass = 0};

class Hooks : public testing::TestWithParam<std::string> {};

TEST_P(Hooks, AverageExactlyWhereNothingIsLost) {
  constexpr std::size_t kCount = 5003;
  for (const int size : {1, 2, 4}) {
    expectNone(onRanks(size, [&](Communicator& communicator, int rank) {
      BucketHookSpec spec{.type = GetParam(), .startPass = 100};
      Held held({kCount}, {{0, 0, 1, kCount}}, spec, size);
      std::vector<float> data(kCount);
      for (std::size_t i = 0; i < kCount; ++i) data[i] = valueOf(rank, i);
      held.buckets->begin(std::vector<std::uint32_t>{1}, 1, true);
      held.run(held.buckets->add(0, data), communicator);
      const auto times = held.buckets->times();
      EXPECT_LE(times[0].ready, times[0].start);
      EXPECT_LE(times[0].start, times[0].end);
      for (std::size_t i = 0; i < kCount; ++i) {
        float sum = 0;
        for (int other = 0; other < size; ++other) sum += valueOf(other, i);
        ASSERT_EQ(held.memory[0][i], sum / static_cast<float>(size)) << i << " of " << size;
      }
    }));
  }
}

class Parts : public testing::TestWithParam<std::string> {};

TEST_P(Parts, AreWhatARankGetsAlone) {
  constexpr std::size_t kCount = 5008;
  constexpr std::size_t kRanks = 3;
  constexpr std::size_t kPart = (kCount + 16 * kRanks - 1) / (16 * kRanks) * 16;
  constexpr std::size_t kPadded = kPart * kRanks;
  expectNone(onRanks(kRanks, [&](Communicator& communicator, int rank) {
    BucketHookSpec spec;
    spec.type = GetParam();
    const std::vector<GradientSlot> slots{{0, 0, 1, kCount}};
    Held whole({kPadded}, slots, spec, kRanks);
    Held part({kPadded}, slots, spec, kRanks);
    std::vector<float> data(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      data[i] = 0.1F * valueOf(rank, i) + static_cast<float>(i);
    }
    for (int pass = 0; pass < 2; ++pass) {
      whole.pass(data, communicator);
      part.pass(data, communicator, BucketResult::part);
      const std::size_t begin = kPart * static_cast<std::size_t>(rank);
      for (std::size_t i = begin; i < std::min(begin + kPart, kCount); ++i) {
        ASSERT_EQ(part.memory[0][i], whole.memory[0][i]) << i;
      }
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Of, Hooks, testing::Values("plain", "float16", "bfloat16", "powersgd"));
INSTANTIATE_TEST_SUITE_P(Of, Parts,
                         testing::Values("plain", "float16", "bfloat16", "2bit", "powersgd"));

TEST(TwoBit, CarriesOverWhatTheCodesDoNot) {
  constexpr std::size_t kCount = 4099;
  constexpr int kSize = 3;
  expectNone(onRanks(kSize, [&](Communicator& communicator, int rank) {
    BucketHookSpec spec{.type = "2bit", .threshold = 0.5};
    Held held({kCount}, {{0, 0, 1, kCount}}, spec, kSize, ReduceOp::sum);
    // A constant 0.125 * (rank + 1) each time: of n passes the codes carry all but a residual below
    // the threshold.
    const float own = 0.125F * static_cast<float>(rank + 1);
    const std::vector<float> data(kCount, own);
    std::vector<double> carried(kCount);
    constexpr int kPasses = 16;
    for (int pass = 0; pass < kPasses; ++pass) {
      held.pass(data, communicator);
      for (std::size_t i = 0; i < kCount; ++i) carried[i] += held.memory[0][i];
    }
    // (1 + 2 + 3) / 8 a pass; 16 passes of eighths end with all residuals at 0.
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(carried[i], kPasses * 0.75) << i;
  }));
}

/// Rank 1 of 2 matrices u vᵀ is what one column each can carry; sent as it is: a vector.
TEST(PowerSgd, SendsProductsExactlyAndOtherMatricesInTheEnd) {
  constexpr std::size_t kRows = 24;
  constexpr std::size_t kColumns = 40;
  constexpr std::size_t kVector = 7;
  constexpr int kSize = 2;
  for (const bool sum : {false, true})
    expectNone(onRanks(kSize, [&](Communicator& communicator, int rank) {
      const std::size_t count = kRows * kColumns + kVector;
      const ReduceOp op = sum ? ReduceOp::sum : ReduceOp::avg;
      Held held({count}, {{0, kVector, kRows, kColumns}, {0, 0, 1, kVector}}, kPowerSgd, kSize, op);
      // P and Q and the vector, not the matrix.
      EXPECT_EQ(held.scratch.size(), (kRows + kColumns + kVector) * sizeof(float));
      const auto factor = static_cast<float>(rank + 1);
      const float result = sum ? 3 : 1.5F;
      std::vector<float> matrix(kRows * kColumns);
      for (std::size_t i = 0; i < matrix.size(); ++i) {
        matrix[i] = factor * std::sin(static_cast<float>(i / kColumns)) *
                    std::cos(static_cast<float>(i % kColumns));
      }
      const std::vector<float> vector(kVector, factor);
      for (int pass = 0; pass < 3; ++pass) {
        held.buckets->begin(std::vector<std::uint32_t>{1, 1}, 1, true);
        held.buckets->add(1, vector);
        held.run(held.buckets->add(0, matrix), communicator);
        held.buckets->flush();
        static_cast<void>(held.buckets->times());
      }
      for (std::size_t i = 0; i < kVector; ++i) EXPECT_EQ(held.memory[0][i], result);
      for (std::size_t i = 0; i < matrix.size(); ++i) {
        ASSERT_NEAR(held.memory[0][kVector + i], matrix[i] / factor * result, 1e-5) << i;
      }
    }));
}

TEST(PowerSgd, AddsWhatItMissedToTheNext) {
  constexpr std::size_t kSide = 16;
  expectNone(onRanks(2, [&](Communicator& communicator, int rank) {
    BucketHookSpec spec = kPowerSgd;
    spec.startPass = 1;
    Held held({kSide * kSide}, {{0, 0, kSide, kSide}}, spec, 2);
    // Twice the unit matrix on average: no product of thin ones, but their sum over many passes is.
    std::vector<float> matrix(kSide * kSide);
    for (std::size_t i = 0; i < kSide; ++i) {
      matrix[i * kSide + i] = static_cast<float>(1 + 2 * rank);
    }
    std::vector<float> twice(kSide * kSide);
    for (std::size_t i = 0; i < kSide; ++i) twice[i * kSide + i] = 2;
    std::vector<double> sum(kSide * kSide);
    constexpr int kPasses = 400;
    for (int pass = 0; pass < kPasses; ++pass) {
      held.pass(matrix, communicator);
      // The first goes as it is.
      EXPECT_TRUE(pass > 1 || (held.memory[0] == twice) == (pass == 0));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += held.memory[0][i];
    }
    for (std::size_t i = 0; i < kSide; ++i) {
      EXPECT_NEAR(sum[i * kSide + i] / kPasses, 2, 0.25) << i;
    }
  }));
}

/// One bad value on one rank: the pass shows it in its matrix alone, and the passes after are as if
/// it had not been.
TEST(PowerSgd, WhatIsNoNumberIsSeenOnceAndLeavesNothing) {
  constexpr std::size_t kSide = 16;
  constexpr std::size_t kCount = kSide * kSide;
  expectNone(onRanks(2, [&](Communicator& communicator, int rank) {
    const std::vector<GradientSlot> slots{{0, 0, kSide, kSide}, {0, kCount, kSide, kSide}};
    Held with({2 * kCount}, slots, kPowerSgd, 2);
    Held without({2 * kCount}, slots, kPowerSgd, 2);
    std::vector<float> matrix(kCount);
    for (std::size_t i = 0; i < kSide; ++i) {
      matrix[i * kSide + i] = static_cast<float>(i + static_cast<std::size_t>(rank));
    }
    const auto pass = [&](Held& held, const std::vector<float>& first) {
      held.buckets->begin(std::vector<std::uint32_t>{1, 1}, 1, true);
      held.buckets->add(1, matrix);
      held.run(held.buckets->add(0, first), communicator);
      held.buckets->flush();
      static_cast<void>(held.buckets->times());
    };
    for (int i = 0; i < 3; ++i) {
      pass(with, matrix);
      pass(without, matrix);
    }
    for (const float bad : {std::nanf(""), INFINITY}) {
      std::vector<float> broken = matrix;
      if (rank == 1) broken[5] = bad;
      pass(with, broken);
      EXPECT_FALSE(std::isfinite(with.memory[0][5]));
      for (std::size_t i = kCount; i < 2 * kCount; ++i) {
        ASSERT_TRUE(std::isfinite(with.memory[0][i])) << i;
      }
      pass(with, matrix);
      pass(without, matrix);
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(with.memory[0][i], without.memory[0][i]) << i;
      }
    }
  }));
}

TEST(BucketHook, OfAnUnknownTypeIsRefused) {
  BucketHookSpec spec;
  spec.type = "3bit";
  EXPECT_THROW(BucketHook::create(spec, ReduceOp::sum, {}, {}, 1), Error);
}

}  // namespace
}  // namespace gradlink::test
