// How many bytes of pushes are let on their way, and when a window that nothing leaves grows.
#include <gtest/gtest.h>

#include <chrono>

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
  now = window.patienceEnds();
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
    now = window.patienceEnds();
    window.look(now);
  }
  EXPECT_TRUE(window.takes(kWindowPiece, 4 * kMost)) << "it could be waiting for ever";
}

}  // namespace
}  // namespace gradlink
