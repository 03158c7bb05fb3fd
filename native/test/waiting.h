// How tests wait for what somebody else does: for conditions, not times, and never without end.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include "core/deadline.h"
#include "core/error.h"

namespace gradlink::test {

/// Throws where a condition does not come true: before CTest ends the case, so that it says where.
template <class Condition>
void waitUntil(const Condition& holds) {
  const Deadline deadline = Deadline::in(50000);
  for (int looks = 0; !holds(); ++looks) {
    if (deadline.passed()) throw Error(ErrorCode::timeout, "the test waited 50 s for a condition");
    // At first somebody who is about to answer.
    if (looks < 100) {
      std::this_thread::yield();
    } else {
      usleep(200);
    }
  }
}

/// Counters that parent and children share.
struct Scoreboard {
  std::atomic<int> ready{0};
  std::atomic<int> go{0};

  static void waitFor(const std::atomic<int>& counter, int value) {
    waitUntil([&] { return counter.load() >= value; });
  }
};
template <class Board = Scoreboard>
Board* makeScoreboard() {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Board;
}

}  // namespace gradlink::test
