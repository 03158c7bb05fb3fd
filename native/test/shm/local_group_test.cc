#include <gtest/gtest.h>

#include "core/error.h"
#include "shm/shm.h"
#include "test/shm/support.h"

namespace gradlink::test {
namespace {

class LocalGroup : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(LocalGroup, GivesTheSameAsAPlainLoop) {
  const auto [op, size] = GetParam();
  auto comm = shm::makeLocalGroup(size);
  std::vector<Case> cases = everyLength(op, size, {0, 1, 3, 127, 4099, 100003});
  for (const Case& c : everyType(op, size, 333)) cases.push_back(c);
  for (const Case& c : toTheBit(cases)) EXPECT_EQ(runGroup(*comm, c), "");
}

INSTANTIATE_TEST_SUITE_P(Collectives, LocalGroup,
                         testing::Combine(testing::ValuesIn(kAllOps), testing::Values(1, 2, 3, 7)),
                         kNameOfCase);

TEST(LocalGroupByHand, ScansThreeRanksWithTheirOwnDataAndWithout) {
  auto comm = shm::makeLocalGroup(3);
  std::vector<std::vector<float>> data{{1, 10}, {2, 20}, {4, 40}};
  const void* in[] = {data[0].data(), data[1].data(), data[2].data()};
  void* out[] = {data[0].data(), data[1].data(), data[2].data()};
  comm->collective({Kind::scan, DType::float32, ReduceOp::sum, 0, 2}, {in, out});
  EXPECT_EQ(data, (std::vector<std::vector<float>>{{1, 10}, {3, 30}, {7, 70}}));
  comm->collective({Kind::exscan, DType::float32, ReduceOp::prod, 0, 2}, {in, out});
  EXPECT_EQ(data, (std::vector<std::vector<float>>{{1, 1}, {1, 10}, {3, 300}}));
  for (const Kind kind : {Kind::scan, Kind::exscan}) {
    EXPECT_THROW(comm->collective({kind, DType::float32, ReduceOp::avg, 0, 2}, {in, out}), Error);
  }
}

TEST(LocalGroupByHand, RefusesWhatNeedsOneRankAndSaysWhatToUse) {
  auto comm = shm::makeLocalGroup(2);
  float x = 0;
  const auto error = errorOf([&] { comm->send(&x, 1, DType::float32, 1, 0); });
  ASSERT_TRUE(error) << "send did not throw";
  EXPECT_EQ(error->code, ErrorCode::unsupported);
  EXPECT_TRUE(error->usable);
  EXPECT_EQ(lacking(error->what(), {"openRanks()"}), "");
  EXPECT_THROW(comm->split(0, 0), Error);
}

TEST(LocalGroupByHand, NamesABadRootANullBufferAndAnAsymmetricNeighborhood) {
  auto comm = shm::makeLocalGroup(2);
  float a = 1, b = 2;
  const void* in[] = {&a, &b};
  void* out[] = {&a, &b};
  EXPECT_THROW(comm->broadcast({in, out}, 1, DType::float32, 2), Error);
  void* missing[] = {&a, nullptr};
  EXPECT_THROW(comm->allReduce({in, missing}, 1, DType::float32, ReduceOp::sum), Error);
  Neighborhood lonely[2];
  lonely[0].sources.push_back({1, 1.0});
  EXPECT_THROW(comm->neighborAllReduce({in, out}, 1, DType::float32, lonely), Error);
  comm->allReduce({in, out}, 1, DType::float32, ReduceOp::sum);
  EXPECT_EQ(a, 3);
}

TEST(SlowLocalGroup, ReducesMoreThanTwoGiBPerRank) {
  const std::size_t count = (std::size_t{1} << 31) + 4097;
  auto comm = shm::makeLocalGroup(2);
  std::vector<std::int8_t> a(count, 1), b(count, 2);
  a[count - 1] = 5;
  const void* in[] = {a.data(), b.data()};
  void* out[] = {a.data(), b.data()};
  comm->allReduce({in, out}, count, DType::int8, ReduceOp::sum);
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(a[std::size_t{1} << 31], 3);
  EXPECT_EQ(b[count - 1], 7);
  EXPECT_TRUE(std::all_of(b.begin(), b.end() - 1, [](auto v) { return v == 3; }));
}

}  // namespace
}  // namespace gradlink::test
