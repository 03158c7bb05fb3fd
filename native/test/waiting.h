// How tests wait for what somebody else does: for conditions, not times, and never without end.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "core/deadline.h"
#include "core/error.h"

namespace gradlink::test {

/// Throws where a condition does not come true: before CTest ends the case, so that it says where.
template <class Condition>
void waitUntil(const Condition& holds) {
  const Deadline deadline = Deadline::in(50000);
  while (!holds()) {
    if (deadline.passed()) throw Error(ErrorCode::timeout, "the test waited 50 s for a condition");
    usleep(200);
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
