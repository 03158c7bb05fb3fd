// How many bytes of pushes are let on their way, when a window that nothing leaves grows, and when
// servers that say nothing are to blame.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "kvstore/worker/presence.h"
#include "kvstore/worker/window.h"

namespace gradlink {
namespace {

using dist::PushWindow;
using Clock = Deadline::Clock;

constexpr std::size_t kMost = 16 << 20;
constexpr std::size_t kWindowPiece = 256 << 10;

TEST(DistWindow, TakesOnePieceHoweverLarge) {
  const PushWindow window(1000);
  EXPECT_TRUE(window.takes(kMost, 0));
  EXPECT_FALSE(window.takes(1001, 1));
  EXPECT_TRUE(window.takes(999, 1));
}

TEST(DistWindow, IsSmallWhileServersReleaseAndGrowsOnceTheyDoNot) {
  PushWindow window(kMost);
  Clock::time_point now = Clock::now();
  window.staged(now);
  std::size_t small = 0;
  while (window.takes(kWindowPiece, small)) small += kWindowPiece;
  EXPECT_LT(small, kMost);
  window.look(now);
  EXPECT_FALSE(window.takes(kWindowPiece, small)) << "no time has passed";
  now = window.timeoutEnds();
  window.look(now);
  EXPECT_TRUE(window.takes(kWindowPiece, small));
  window.released(small - kWindowPiece, now);
  EXPECT_TRUE(window.takes(2 * kWindowPiece, small - kWindowPiece)) << "some are out still";
  window.released(0, now);
  EXPECT_FALSE(window.takes(kWindowPiece, small)) << "small again";
}

TEST(DistWindow, GrowsBeyondTheMostToo) {
  PushWindow window(kMost);
  Clock::time_point now = Clock::now();
  window.staged(now);
  for (int i = 0; i < 100 && !window.takes(kWindowPiece, 4 * kMost); ++i) {
    now = window.timeoutEnds();
    window.look(now);
  }
  EXPECT_TRUE(window.takes(kWindowPiece, 4 * kMost)) << "it could be waiting forever";
}

// The deadline is 10 s, in milliseconds as everywhere.
TEST(DistPresence, AsksAfterHalfTheDeadlineAndBlamesNearItsEnd) {
  using std::chrono::milliseconds;
  dist::Presence presence(3, 10'000);
  const Clock::time_point begun = Clock::now();
  const auto at = [&](int ms) { return begun + milliseconds(ms); };
  EXPECT_FALSE(presence.ask(begun, at(4999)));
  EXPECT_TRUE(presence.silent(begun, at(9999)).empty()) << "nobody was asked";
  EXPECT_TRUE(presence.ask(begun, at(5000)));
  EXPECT_FALSE(presence.ask(begun, at(6000))) << "once for each wait";
  presence.heard(1, at(5001));
  EXPECT_TRUE(presence.silent(begun, at(8999)).empty());
  EXPECT_EQ(presence.silent(begun, at(9000)), (std::vector<int>{0, 2}));
  // The next wait asks anew; what is asked late has 3 s to be answered.
  const Clock::time_point next = at(20'000);
  EXPECT_TRUE(presence.silent(next, next + milliseconds(9500)).empty());
  EXPECT_TRUE(presence.ask(next, next + milliseconds(8000)));
  presence.heard(0, next + milliseconds(8001));
  EXPECT_TRUE(presence.silent(next, next + milliseconds(10'999)).empty());
  EXPECT_EQ(presence.silent(next, next + milliseconds(11'000)), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace gradlink
