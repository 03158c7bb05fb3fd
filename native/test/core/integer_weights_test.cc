// Weighted sums of integers, against arithmetic of 128 bits and by cases.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/reduce_kernels.h"
#include "test/reference.h"

namespace gradlink {
namespace {

using reference::Bytes;

template <class T>
std::vector<T> sumOf(DType dtype, const std::vector<std::vector<T>>& arrays,
                     const std::vector<double>& weights) {
  std::vector<const void*> src;
  for (const std::vector<T>& array : arrays) src.push_back(array.data());
  std::vector<T> out(arrays[0].size());
  weightedSum(out.data(), src, weights, out.size(), dtype);
  return out;
}

/// Lengths within a block, at its end and beyond; random bits, so that sums wrap around.
template <class T>
void expectExact(DType dtype) {
  __extension__ using Wide = unsigned __int128;
  const std::vector<double> weights = {3, -2, 1, 0, 0x1p40};
  for (const std::size_t count : {1, 7, 511, 512, 513, 2000}) {
    std::vector<std::vector<T>> arrays;
    for (std::uint32_t s = 0; s < weights.size(); ++s) {
      const Bytes bytes = reference::randomArray(count, dtype, 7 * s + 1);
      arrays.emplace_back(count);
      std::memcpy(arrays.back().data(), bytes.data(), bytes.size());
    }
    std::vector<T> expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      Wide sum = 0;
      for (std::size_t s = 0; s < weights.size(); ++s) {
        sum += static_cast<Wide>(arrays[s][i]) *
               static_cast<Wide>(static_cast<std::int64_t>(weights[s]));
      }
      expected[i] = static_cast<T>(sum);
    }
    EXPECT_EQ(sumOf(dtype, arrays, weights), expected) << nameOf(dtype) << " " << count;
  }
}

TEST(IntegerWeights, WholeOnesAreExactAndWrapAround) {
  expectExact<std::int8_t>(DType::int8);
  expectExact<std::uint8_t>(DType::uint8);
  expectExact<std::int16_t>(DType::int16);
  expectExact<std::int32_t>(DType::int32);
  expectExact<std::uint32_t>(DType::uint32);
  expectExact<std::int64_t>(DType::int64);
  expectExact<std::uint64_t>(DType::uint64);
}

TEST(IntegerWeights, KeepWhatNoFloatHolds) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ(sumOf<std::int64_t>(DType::int64, {{big}, {1}}, {2, -1}),
            std::vector<std::int64_t>{2 * big - 1});
}

TEST(IntegerWeights, OthersAreRoundedToTheNearestAndHalvesToTheEvenOne) {
  const std::vector<std::int16_t> a = {0, 1, 3, 5, -1, -3, 7, 10};
  EXPECT_EQ(sumOf<std::int16_t>(DType::int16, {a}, {0.5}),
            (std::vector<std::int16_t>{0, 0, 2, 2, 0, -2, 4, 5}));
  const std::vector<std::int32_t> ones(3, 1);
  EXPECT_EQ(sumOf<std::int32_t>(DType::int32, {ones, ones, ones}, {0.1, 0.2, 0.7}), ones);
}

TEST(IntegerWeights, WhatIsBeyondTheTypeBecomesItsEnd) {
  EXPECT_EQ(sumOf<std::int8_t>(DType::int8, {{100, -100, 1}}, {1.5}),
            (std::vector<std::int8_t>{127, -128, 2}));
  EXPECT_EQ(sumOf<std::uint8_t>(DType::uint8, {{200, 1}}, {1.5}),
            (std::vector<std::uint8_t>{255, 2}));
  EXPECT_EQ(sumOf<std::uint8_t>(DType::uint8, {{200}}, {-0.5}), std::vector<std::uint8_t>{0});
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kGreatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sumOf<std::int64_t>(DType::int64, {{kGreatest, kLeast}}, {1.5}),
            (std::vector<std::int64_t>{kGreatest, kLeast}));
  EXPECT_EQ(sumOf<std::uint64_t>(DType::uint64, {{UINT64_MAX}}, {1.5}),
            std::vector<std::uint64_t>{UINT64_MAX});
  // No sum at all: infinities of both signs.
  EXPECT_EQ(sumOf<std::int32_t>(DType::int32, {{100}, {100}}, {1.5e308, -1.5e308}),
            std::vector<std::int32_t>{0});
}

}  // namespace
}  // namespace gradlink
