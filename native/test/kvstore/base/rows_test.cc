// Sums of rows, and pieces of which only some elements travel.
#include "kvstore/base/rows.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kvstore/protocol/piece_rows.h"

namespace gradlink {
namespace {

using Rows = std::vector<std::int64_t>;

std::vector<float> floatsOf(const SortedRows& sum, std::size_t rowLength) {
  const auto* const data = static_cast<const float*>(sum.data.data());
  return {data, data + sum.rows.size() * rowLength};
}

TEST(Rows, AddUpInTheOrderOfTheParts) {
  const Rows first{7, 2, 7};
  const Rows second{2, 9};
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<float> b{10, 20, 30, 40};
  const SomeRows parts[] = {{a.data(), first}, {b.data(), second}};
  const SortedRows sum = sumRows(parts, 2, Partial::none(DType::float32));
  EXPECT_EQ(sum.rows, (Rows{2, 7, 9}));
  EXPECT_EQ(floatsOf(sum, 2), (std::vector<float>{13, 24, 6, 8, 30, 40}));
}

TEST(Rows, MayBeNone) {
  const Rows none;
  const SomeRows parts[] = {{nullptr, none}};
  EXPECT_TRUE(sumRows(parts, 4, Partial::none(DType::float64)).rows.empty());
}

TEST(Rows, FormRuns) {
  const Rows rows{0, 1, 4, 6, 7};
  std::vector<std::vector<std::size_t>> runs;
  forEachRun(rows, [&](std::size_t first, std::size_t count, std::size_t at) {
    runs.push_back({first, count, at});
  });
  EXPECT_EQ(runs, (std::vector<std::vector<std::size_t>>{{0, 2, 0}, {4, 1, 2}, {6, 2, 3}}));
}

class PieceRowsTest : public testing::Test {
 protected:
  // Rows of 3 elements; the piece has elements 4 to 13: part of row 1, rows 2 and 3, part of 4.
  std::vector<dist::RowRun> runs_ = dist::runsOf(rows_, 3, 4, 10);

  std::vector<std::byte> written() const {
    std::vector<std::byte> payload(dist::pushBytes(runs_, DType::float32));
    dist::writePush(runs_, data_.data(), DType::float32, payload.data());
    return payload;
  }

  static inline const Rows rows_{0, 1, 3, 4, 9};
  const std::vector<float> data_{0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 27, 28, 29};
};

TEST_F(PieceRowsTest, ThatDoNotFitItAreCut) {
  ASSERT_EQ(runs_.size(), 2U);
  EXPECT_EQ(runs_[0].run.first, 0U);
  EXPECT_EQ(runs_[0].run.count, 2U);
  EXPECT_EQ(runs_[0].at, 4U);
  // Rows 3 and 4 follow one another.
  EXPECT_EQ(runs_[1].run.first, 5U);
  EXPECT_EQ(runs_[1].run.count, 5U);
  EXPECT_EQ(runs_[1].at, 6U);
  EXPECT_TRUE(dist::runsOf(rows_, 3, 15, 12).empty());
}

TEST_F(PieceRowsTest, ArriveWhereTheyAreInThePiece) {
  const std::vector<std::byte> payload = written();
  const auto read = dist::readPush(payload.data(), payload.size(), 10, DType::float32);
  ASSERT_TRUE(read);
  std::vector<float> piece(10);
  dist::scatter(*read, DType::float32, piece.data());
  EXPECT_EQ(piece, (std::vector<float>{4, 5, 0, 0, 0, 9, 10, 11, 12, 13}));
}

TEST_F(PieceRowsTest, ThatDoNotFitThePayloadAreNone) {
  const std::vector<std::byte> payload = written();
  const auto reads = [](const std::vector<std::byte>& bytes, std::size_t size, std::size_t count) {
    return dist::readPush(bytes.data(), size, count, DType::float32).has_value();
  };
  EXPECT_FALSE(reads(payload, payload.size(), 9));
  for (std::size_t size = 0; size < payload.size(); ++size) EXPECT_FALSE(reads(payload, size, 10));
  const auto altered = [&](std::size_t word, std::uint32_t value) {
    std::vector<std::byte> bytes = payload;
    std::memcpy(bytes.data() + word * sizeof value, &value, sizeof value);
    return reads(bytes, bytes.size(), 10);
  };
  EXPECT_FALSE(altered(0, 0xffffffff));  // runs
  EXPECT_FALSE(altered(1, 0xffffffff));
  EXPECT_FALSE(altered(2, 4));  // the first run, over the second
  EXPECT_FALSE(altered(3, 0));
  EXPECT_FALSE(altered(4, 0xfffffffe));  // the second
  EXPECT_FALSE(altered(5, 0xffffffff));
  EXPECT_TRUE(altered(4, 4));
}

}  // namespace
}  // namespace gradlink
