// Weighted sums: several at once have the bits of one after the other, wherever the results go;
// those of integers are held against arithmetic of 128 bits and by cases.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "core/kernels/reduce_kernels.h"
#include "test/reference.h"
#include "test/simd_levels.h"

namespace gradlink {
namespace {

using reference::Bytes;
using Rows = std::vector<std::vector<std::pair<std::size_t, double>>>;

/// Where results go: arrays of their own, those of the same sources, or some here and some there.
enum class Place { apart, over, mixed };

/// "" or which sum differs from the one that weightedSum computes from untouched sources.
std::string differs(const simd::KernelTable& level, const Rows& rows, std::size_t count,
                    DType dtype, Place place, bool streaming) {
  const std::size_t bytes = count * sizeOf(dtype);
  std::vector<Bytes> src;
  std::vector<Bytes> apart(rows.size(), Bytes(bytes + 64, 0xa5));
  for (std::size_t r = 0; r < rows.size(); ++r)
    src.push_back(reference::randomArray(count, dtype, static_cast<std::uint32_t>(7 * r + count)));
  std::vector<Bytes> wanted;
  for (const auto& row : rows) {
    std::vector<const void*> from;
    std::vector<double> weights;
    for (const auto& [source, weight] : row) {
      from.push_back(src[source].data());
      weights.push_back(weight);
    }
    wanted.emplace_back(bytes);
    simd::weightedSum(level, wanted.back().data(), from, weights, count, dtype);
  }
  std::vector<WeightedTerm> terms;
  std::vector<WeightedOutput> outputs;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool over = place == Place::over || (place == Place::mixed && r % 2 == 0);
    outputs.push_back({over ? src[r].data() : apart[r].data(), rows[r].size()});
    for (const auto& [source, weight] : rows[r]) terms.push_back({src[source].data(), weight});
  }
  simd::weightedSums(level, outputs, terms, count, dtype, streaming);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto* got = static_cast<const std::uint8_t*>(outputs[r].dst);
    const std::string text = reference::difference(got, wanted[r].data(), count, dtype);
    if (!text.empty()) return "sum " + std::to_string(r) + ": " + text;
    if (apart[r][bytes] != 0xa5) return "beyond sum " + std::to_string(r);
  }
  return "";
}

TEST(WeightedSums, AreThoseOfOneAfterTheOther) {
  const Rows ring = {
      {{0, 0.5}, {3, 0.25}}, {{1, 0.5}, {0, 0.75}}, {{2, 0.3}, {1, 0.7}}, {{3, 1}, {2, 2}}};
  const Rows pairs = {
      {{0, 0.5}, {2, 0.5}}, {{1, 0.1}, {3, 0.9}}, {{2, 0.5}, {0, 0.5}}, {{3, 1}, {1, -1}}};
  const Rows everybodyAndNobody = {
      {{0, 0.2}, {1, 0.3}, {2, 0.5}}, {{1, 0.25}}, {{2, 0.5}, {1, 0.1}, {0, 0.4}}};
  for (const simd::KernelTable* level : allLevels()) {
    for (const DType dtype : kHostDTypes) {
      for (const std::size_t count : {0, 1, 7, 64, 129, 1000, 2051}) {
        for (const Place place : {Place::apart, Place::over, Place::mixed}) {
          for (const bool streaming : {false, true}) {
            for (const Rows& rows : {ring, pairs, everybodyAndNobody}) {
              EXPECT_EQ(differs(*level, rows, count, dtype, place, streaming), "")
                  << level->name << " " << nameOf(dtype) << " " << count << " elements, place "
                  << static_cast<int>(place) << (streaming ? ", streaming" : "");
            }
          }
        }
      }
    }
  }
}

/// Random bits, among them sums that overflow or wrap around.
TEST(WeightedSums, DivideAsAveragesDo) {
  for (const simd::KernelTable* level : allLevels()) {
    for (const DType dtype : kHostDTypes) {
      for (const std::size_t divisor : {2, 3, 7}) {
        for (const std::size_t count : {1, 64, 1000}) {
          std::vector<Bytes> src;
          std::vector<const void*> from;
          std::vector<WeightedTerm> terms;
          for (std::size_t s = 0; s < divisor; ++s)
            src.push_back(reference::randomArray(count, dtype, static_cast<std::uint32_t>(s + 1)));
          for (const Bytes& bytes : src) {
            from.push_back(bytes.data());
            terms.push_back({bytes.data(), 1});
          }
          Bytes wanted(count * sizeOf(dtype));
          Bytes got(count * sizeOf(dtype));
          void* const dst[] = {wanted.data()};
          simd::reduceMany(*level, dst, from, count, dtype, ReduceOp::avg, {}, divisor);
          const WeightedOutput output[] = {{got.data(), divisor, divisor}};
          simd::weightedSums(*level, output, terms, count, dtype, false);
          EXPECT_EQ(reference::difference(got.data(), wanted.data(), count, dtype), "")
              << level->name << " " << nameOf(dtype) << " " << count << " by " << divisor;
        }
      }
    }
  }
}

TEST(WeightedSums, KeepNegativeZero) {
  for (const simd::KernelTable* level : allLevels()) {
    std::vector<double> data(3, -0.0);
    const WeightedOutput output[] = {{data.data(), 1}};
    const WeightedTerm term[] = {{data.data(), 1}};
    simd::weightedSums(*level, output, term, data.size(), DType::float64, false);
    for (const double value : data) EXPECT_TRUE(std::signbit(value)) << level->name;
  }
}

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
