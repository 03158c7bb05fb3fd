// Where keys go: whole and small, or cut; the same on every worker; loads alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kvstore/worker/placement.h"
#include "kvstore/worker/transfer.h"

namespace gradlink {
namespace {

using dist::Piece;
using dist::PieceCursor;
using dist::Shard;
using dist::ShardPlacer;

/// Shards of a key must be its elements, each once, in order.
void expectCovers(const std::vector<Shard>& shards, std::size_t count) {
  std::size_t next = 0;
  for (const Shard& shard : shards) {
    EXPECT_EQ(shard.first, next);
    EXPECT_GT(shard.count, 0u);
    next += shard.count;
  }
  EXPECT_EQ(next, count);
}

TEST(DistPlacement, SmallKeysAreWholeAndBigOnesCutOverAllServers) {
  ShardPlacer placer(3, 1000);
  const auto small = placer.place(999, DType::float32);
  ASSERT_EQ(small.size(), 1u);
  expectCovers(small, 999);
  const auto big = placer.place(1000, DType::float32);
  ASSERT_EQ(big.size(), 3u);
  expectCovers(big, 1000);
  for (std::size_t i = 0; i < big.size(); ++i) {
    EXPECT_EQ(big[i].server, static_cast<int>(i));
    EXPECT_EQ(big[i].number, i + 1);
    EXPECT_EQ(big[i].first % 32, 0u) << "codes of one shard must not share a word with another's";
  }
}

TEST(DistPlacement, CutsBetweenRowsWhereThatLeavesShardsEven) {
  ShardPlacer placer(3, 1000);
  for (const std::size_t rowLength : {1, 3, 24, 32, 100, 128}) {
    const std::size_t count = rowLength * 25'001;
    EXPECT_FALSE(placer.cutsRows(count, rowLength));
    const auto shards = placer.place(count, DType::float32, rowLength);
    ASSERT_EQ(shards.size(), 3u);
    expectCovers(shards, count);
    for (const dist::Shard& shard : shards) {
      EXPECT_EQ(shard.first % rowLength, 0u) << rowLength;
      EXPECT_EQ(shard.first % 32, 0u) << rowLength;
      const double part = static_cast<double>(shard.count) / static_cast<double>(count);
      EXPECT_NEAR(part, 1.0 / 3, 0.05) << rowLength;
    }
  }
  // Two rows for three servers.
  EXPECT_TRUE(placer.cutsRows(100'000, 50'000));
  expectCovers(placer.place(100'000, DType::float32, 50'000), 100'000);
  EXPECT_FALSE(placer.cutsRows(999, 999)) << "of one server";
  EXPECT_TRUE(placer.cutsRows(1000, 1000));
  EXPECT_FALSE(ShardPlacer(1, 1).cutsRows(100'000, 50'000));
}

TEST(DistPlacement, CoversEveryLengthWithEveryNumberOfServers) {
  for (int servers = 1; servers <= 9; ++servers) {
    ShardPlacer placer(servers, 1);
    for (std::size_t count : {0, 1, 31, 32, 33, 100, 288, 1000, 12345}) {
      expectCovers(placer.place(count, DType::float64), count);
    }
  }
}

TEST(DistPlacement, WholeKeysGoWhereTheFewestBytesAre) {
  ShardPlacer placer(2, 1000);
  std::vector<int> servers;
  // A hundred float64 weigh more than five hundred bytes, and less than nine hundred.
  for (const auto& [count, dtype] : {std::pair{std::size_t{100}, DType::float64},
                                     {500, DType::uint8},
                                     {200, DType::uint8},
                                     {100, DType::float16},
                                     {999, DType::uint8},
                                     {20, DType::float64}}) {
    servers.push_back(placer.place(count, dtype).front().server);
  }
  EXPECT_EQ(servers, (std::vector<int>{0, 1, 1, 1, 0, 1}));
}

TEST(DistPlacement, PiecesTakeTurnsBetweenServersAndCoverTheKey) {
  ShardPlacer placer(2, 1000);
  const std::size_t step = dist::pieceElements(DType::float32);
  const std::size_t count = 3 * step + 77;
  const auto shards = placer.place(count, DType::float32);
  PieceCursor cursor(shards, DType::float32);
  EXPECT_EQ(cursor.total(), 4u);
  std::vector<bool> seen(count);
  std::vector<int> servers;
  while (cursor.next()) {
    const Piece piece = cursor.take();
    EXPECT_EQ(piece.first, piece.shard->first + piece.number * step);
    for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
      EXPECT_FALSE(seen[i]);
      seen[i] = true;
    }
    servers.push_back(piece.shard->server);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  EXPECT_EQ(servers, (std::vector<int>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace gradlink
