// The one judgement over what ranks bring: whom it blames, and what it shows.
#include "core/agreement.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/collective.h"

namespace gradlink {
namespace {

/// What each rank hears of its call; nothing where all make one.
template <class Record>
std::vector<std::optional<Error>> judge(const std::vector<Record>& all) {
  std::vector<std::optional<Error>> told(all.size());
  for (std::size_t self = 0; self < all.size(); ++self) {
    try {
      checkSame<Record>("op", all, static_cast<int>(self));
    } catch (const Error& error) {
      told[self] = error;
    }
  }
  return told;
}

constexpr Shape kSum{Kind::allReduce, DType::float32, ReduceOp::sum, 0, 10};
constexpr Shape kRooted{Kind::broadcast, DType::float32, ReduceOp::sum, 1, 10};
constexpr Shape kCounted{Kind::gatherV, DType::float32, ReduceOp::sum, 1, 0};

struct Difference {
  std::vector<Shape> calls;
  /// Of the error; of each rank the first that calls something else.
  int rank;
  std::vector<int> other;
  std::string text;
};

TEST(Judgement, NamesWhoCallsWhat) {
  Shape kind = kSum, dtype = kSum, op = kSum, count = kSum, root = kRooted, place = kCounted;
  kind.kind = Kind::scan;
  dtype.dtype = DType::int32;
  op.op = ReduceOp::max;
  count.count = 12;
  root.root = 0;
  place.root = 0;
  const Difference cases[] = {
      {{kSum, kind},
       1,
       {1, 0},
       "rank 0 called allReduce(count 10, float32, sum); rank 1 called scan"},
      {{kSum, dtype}, 1, {1, 0}, "rank 1 called allReduce(count 10, int32, sum)"},
      {{kSum, op}, 1, {1, 0}, "rank 1 called allReduce(count 10, float32, max)"},
      {{kSum, count}, 1, {1, 0}, "rank 1 called allReduce(count 12, float32, sum)"},
      {{kRooted, root}, 1, {1, 0}, "rank 1 called broadcast(count 10, float32, root 0)"},
      {{kCounted, place}, 1, {1, 0}, "rank 1 called gatherV(float32, root 0)"},
      {{kNodesCall, kOpenWireCall}, 1, {1, 0}, "rank 0 called nodes; rank 1 called openWire"},
      {{{}, {Kind::split}}, 1, {1, 0}, "rank 0 called barrier; rank 1 called split"},
      // The first that differs from rank 0, though rank 0 may be the odd one.
      {{kSum, kSum, op, kSum}, 2, {2, 2, 0, 2}, "ranks 0, 1, 3 called"},
      {{op, kSum, kSum}, 1, {1, 0, 0}, "ranks 1, 2 called"},
      {{kSum, kSum, count, dtype}, 2, {2, 2, 0, 0}, "; rank 2 called"},
  };
  for (const Difference& c : cases) {
    std::vector<ShapeOnWire> onWire(c.calls.begin(), c.calls.end());
    for (const auto& told : {judge(c.calls), judge(onWire)}) {
      for (std::size_t r = 0; r < told.size(); ++r) {
        ASSERT_TRUE(told[r].has_value()) << c.text;
        EXPECT_EQ(told[r]->code, ErrorCode::mismatch);
        EXPECT_EQ(told[r]->op, "op");
        EXPECT_TRUE(told[r]->usable);
        EXPECT_EQ(told[r]->rank, c.rank) << c.text;
        EXPECT_EQ(told[r]->other, c.other[r]) << c.text;
        EXPECT_NE(std::string(told[r]->what()).find(c.text), std::string::npos) << told[r]->what();
      }
    }
  }
  EXPECT_FALSE(judge<Shape>({kRooted, kRooted, kRooted})[1].has_value());
}

// Of what is not shown, or shown alike, the message says that it differs.
TEST(Judgement, SaysWhereWhatLooksAlikeDiffers) {
  Calls calls;
  calls.add(3, 7, "sum 'a'");
  calls.add(5, 8, "sum 'a'");
  try {
    calls.check("op", 5);
    FAIL() << "noticed nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.rank, 5);
    EXPECT_EQ(error.other, 3);
    EXPECT_NE(std::string(error.what()).find("differs from rank 3's"), std::string::npos);
  }
}

}  // namespace
}  // namespace gradlink
