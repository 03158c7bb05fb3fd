// The one judgement over what ranks bring: whom it blames, and what it shows.
#include "core/agreement.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "core/collective.h"
#include "test/message_support.h"

namespace gradlink {
namespace {

/// What each rank hears of its call; nothing where all make one. Names are of the first so many.
template <class Record>
std::vector<std::optional<Error>> judge(const std::vector<Record>& all,
                                        const std::vector<const char*>& names = {}) {
  std::vector<std::optional<Error>> told(all.size());
  for (std::size_t self = 0; self < all.size(); ++self) {
    told[self] = test::errorOf([&] {
      checkSame<Record>("op", all, static_cast<int>(self), [&] {
        std::vector<CallName> told(names.begin(), names.end());
        told.resize(all.size());
        return told;
      });
    });
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

void expectText(const std::optional<Error>& told, const std::string& text) {
  ASSERT_TRUE(told.has_value()) << text;
  EXPECT_NE(std::string(told->what()).find(text), std::string::npos) << told->what();
}

TEST(Judgement, ShowsWhatRanksNamedCallsThatDiffer) {
  for (const auto& told : judge<Shape>({kSum, kRooted}, {"grad", nullptr})) {
    expectText(told, "rank 0 called allReduce(count 10, float32, sum) as 'grad'; rank 1 called");
    EXPECT_EQ(std::string(told->what()).find("''"), std::string::npos) << told->what();
  }
  const auto several = judge<Shape>({kSum, kSum, kRooted, kSum}, {"a", "b", "c", "a"});
  expectText(several[2], "sum), ranks 0, 3 as 'a', rank 1 as 'b'; rank 2 called");
  expectText(several[2], "root 1) as 'c'");
  const auto some = judge<Shape>({kSum, kSum, kRooted}, {nullptr, "b"});
  expectText(some[0], "sum), rank 1 as 'b'; rank 2 called");
}

TEST(Judgement, AsksForNoNamesWhereAllMakeOneCall) {
  const std::vector<Shape> all(3, kSum);
  checkSame<Shape>("op", all, 0, []() -> std::vector<CallName> {
    ADD_FAILURE() << "asked for names";
    return {};
  });
}

TEST(Judgement, IsWhateverEndsTheExchangeOfNames) {
  const Shape all[] = {kSum, kRooted};
  const auto check = [&] {
    checkSame<Shape>("op", all, 0, []() -> std::vector<CallName> {
      throw Error(ErrorCode::peerLost, "rank 1 was lost").withRank(1);
    });
  };
  EXPECT_EQ(test::codeOf(check), ErrorCode::peerLost);
}

TEST(Judgement, BoundsWhatItShowsOfManyNames) {
  std::vector<std::string> names;
  for (int r = 0; r < 100; ++r) names.push_back("rank's own " + std::to_string(r));
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  std::vector<Shape> calls(100, kSum);
  calls.back() = kRooted;
  const auto told = judge(calls, pointers);
  expectText(told[0], "'rank's own 7'");
  expectText(told[0], "'rank's own 99'");
  EXPECT_EQ(std::string(told[0]->what()).find("'rank's own 8'"), std::string::npos);
}

TEST(CallNames, AreCutBetweenLetters) {
  EXPECT_EQ(CallName(nullptr).text(), "");
  const std::string fits(47, 'x');
  EXPECT_EQ(CallName(fits.c_str()).text(), fits);
  EXPECT_EQ(CallName((fits + "x").c_str()).text(), std::string(44, 'x') + "…");
  // Letters of one to four bytes, at each place of the cut.
  for (const std::string letter : {"x", "é", "€", "😀"}) {
    for (std::size_t before = 0; before < 4; ++before) {
      std::string name(before, '.');
      while (name.size() < 60) name += letter;
      std::string want(before, '.');
      while (want.size() + letter.size() <= 44) want += letter;
      EXPECT_EQ(CallName(name.c_str()).text(), want + "…");
    }
  }
}

TEST(CallNames, OfAPeerEndWithTheirBytes) {
  std::array<char, sizeof(CallName)> bytes;
  bytes.fill('x');
  EXPECT_EQ(std::bit_cast<CallName>(bytes).text(), std::string(bytes.size(), 'x'));
}

// Of what is not shown, or shown alike, the message says that it differs.
TEST(Judgement, SaysWhereWhatLooksAlikeDiffers) {
  Calls calls;
  calls.add(3, 7, "sum 'a'");
  calls.add(5, 8, "sum 'a'");
  const auto error = test::errorOf([&] { calls.check("op", 5); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank, 5);
  EXPECT_EQ(error->other, 3);
  EXPECT_EQ(test::lacking(error->what(), {"differs from rank 3's"}), "");
}

}  // namespace
}  // namespace gradlink
