// How long a wait spins follows from what a wake-up costs on this machine.
#include <gtest/gtest.h>

#include "shm/wake_up.h"

namespace gradlink::shm {
namespace {

TEST(WakeUp, IsMeasuredOnceAndPlausible) {
  const WakeUp& first = wakeUp();
  EXPECT_GT(first.nanoseconds, 0);
  EXPECT_GT(first.pauseNanoseconds, 0);
  EXPECT_EQ(&wakeUp(), &first);
}

TEST(WakeUp, AWaitSpinsAsLongAsAWakeUpTakes) {
  EXPECT_EQ(spinsFor({.nanoseconds = 108e3, .pauseNanoseconds = 20}), 5400);
  EXPECT_EQ(spinsFor({.nanoseconds = 33e3, .pauseNanoseconds = 11}), 3000);
}

TEST(WakeUp, AWaitSpinsNeitherForNothingNorForEver) {
  EXPECT_EQ(spinsFor({.nanoseconds = 1e3, .pauseNanoseconds = 20}), 1250);
  EXPECT_EQ(spinsFor({.nanoseconds = 5e6, .pauseNanoseconds = 10}), 15000);
}

}  // namespace
}  // namespace gradlink::shm
