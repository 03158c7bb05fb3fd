#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/kernels/identity.h"
#include "measure/pattern.h"
#include "test/reference.h"

namespace gradlink::measure {
namespace {

using reference::Bytes;

constexpr std::size_t kCount = 3000;

Bytes filled(const Pattern& pattern, int rank, std::size_t first = 0, std::size_t count = kCount) {
  Bytes array(count * sizeOf(pattern.dtype));
  fillPattern(array.data(), first, count, pattern, rank);
  return array;
}

class PatternTest : public testing::TestWithParam<DType> {};

TEST_P(PatternTest, ReductionIsExactInAnyOrder) {
  const auto dtype = GetParam();
  std::mt19937 random(7);
  for (int op = 0; op < kReduceOpCount; ++op) {
    for (const int size : {1, 2, 3, 4, 7, 16, 40}) {
      const Pattern pattern{dtype, static_cast<ReduceOp>(op), size, 42};
      std::vector<Bytes> arrays;
      for (int rank = 0; rank < size; ++rank) arrays.push_back(filled(pattern, rank));
      std::vector<int> order(size);
      std::iota(order.begin(), order.end(), 0);
      for (int round = 0; round < 3; ++round) {
        std::vector<const void*> in;
        for (const int rank : order) in.push_back(arrays[rank].data());
        Bytes result(kCount * sizeOf(dtype));
        reference::reduce(result.data(), in, kCount, dtype, pattern.op);
        EXPECT_EQ(countWrongReduction(result.data(), 0, kCount, pattern, size), 0u)
            << nameOf(dtype) << " " << nameOf(pattern.op) << " of " << size << " ranks";
        std::shuffle(order.begin(), order.end(), random);
      }
    }
  }
}

TEST_P(PatternTest, ReductionOfTheFirstRanksIsExact) {
  const auto dtype = GetParam();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    const Pattern pattern{dtype, op, 7, 42};
    Bytes nothing(kCount * sizeOf(dtype));
    fillIdentity(nothing.data(), kCount, dtype, op);
    EXPECT_EQ(countWrongReduction(nothing.data(), 0, kCount, pattern, 0), 0u);
    nothing[sizeOf(dtype)] ^= 1;
    EXPECT_EQ(countWrongReduction(nothing.data(), 0, kCount, pattern, 0), 1u);
    std::vector<Bytes> arrays;
    std::vector<const void*> in;
    for (int ranks = 1; ranks <= pattern.size; ++ranks) {
      arrays.push_back(filled(pattern, ranks - 1));
      in.push_back(arrays.back().data());
      Bytes result(kCount * sizeOf(dtype));
      reference::reduce(result.data(), in, kCount, dtype, op);
      EXPECT_EQ(countWrongReduction(result.data(), 0, kCount, pattern, ranks), 0u)
          << nameOf(dtype) << " " << nameOf(op) << " of " << ranks << " of 7 ranks";
      if (ranks == pattern.size) continue;
      EXPECT_GT(countWrongReduction(result.data(), 0, kCount, pattern, pattern.size), 0u);
    }
  }
}

TEST_P(PatternTest, EveryWrongElementIsCounted) {
  const auto dtype = GetParam();
  const Pattern pattern{dtype, ReduceOp::sum, 3, 1};
  Bytes array = filled(pattern, 2);
  EXPECT_EQ(countWrongInput(array.data(), 0, kCount, pattern, 2), 0u);
  for (std::size_t i = 0; i < kCount; i += 100) array[i * sizeOf(dtype)] ^= 1;
  EXPECT_EQ(countWrongInput(array.data(), 0, kCount, pattern, 2), kCount / 100);
}

TEST_P(PatternTest, DiffersByRankIndexAndSeed) {
  const auto dtype = GetParam();
  const Pattern pattern{dtype, ReduceOp::sum, 4, 1};
  const Bytes array = filled(pattern, 0);
  const auto wrong = [&](std::size_t first, const Pattern& other, int rank) {
    return countWrongInput(array.data(), first, kCount, other, rank);
  };
  // A type of few values repeats some by chance; int8 and bfloat16 have the fewest.
  EXPECT_GT(wrong(0, pattern, 1), kCount * 9 / 10);
  EXPECT_GT(wrong(1, pattern, 0), kCount * 9 / 10);
  EXPECT_GT(wrong(0, {dtype, ReduceOp::sum, 4, 2}, 0), kCount * 9 / 10);
}

TEST_P(PatternTest, PartsOfALongArrayAgreeWithTheWhole) {
  const auto dtype = GetParam();
  const Pattern pattern{dtype, ReduceOp::sum, 2, 5};
  const std::size_t whole = 200001;  // several threads' parts
  const Bytes array = filled(pattern, 1, 0, whole);
  const Bytes part = filled(pattern, 1, 150000, 100);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), array.begin() + 150000 * sizeOf(dtype)));
  EXPECT_EQ(countWrongInput(array.data(), 0, whole, pattern, 1), 0u);
}

INSTANTIATE_TEST_SUITE_P(EveryDType, PatternTest, testing::ValuesIn(kHostDTypes),
                         [](const auto& info) { return nameOf(info.param); });

TEST(Pattern, NoRankStandsAside) {
  // 300 ranks are more than bfloat16 can add as ones: they take turns, and every rank has its turn.
  const Pattern pattern{DType::bfloat16, ReduceOp::sum, 300, 3};
  for (const int rank : {0, 1, 299}) {
    const Bytes array = filled(pattern, rank);
    EXPECT_TRUE(std::any_of(array.begin(), array.end(), [](std::uint8_t byte) {
      return byte != 0;
    })) << rank;
  }
}

}  // namespace
}  // namespace gradlink::measure
