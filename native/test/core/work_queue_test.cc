#include "core/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace gradlink {
namespace {

TEST(WorkQueue, RunsTasksInOrderOnOneThread) {
  WorkQueue queue;
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 100; ++i) {
    queue.post([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  queue.drain();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_EQ(threads[i], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(WorkQueue, IsIdleUnlessATaskIsQueuedOrRunning) {
  WorkQueue queue;
  EXPECT_TRUE(queue.idle());
  std::promise<void> started;
  std::promise<void> mayEnd;
  queue.post([&] {
    started.set_value();
    mayEnd.get_future().wait();
  });
  EXPECT_FALSE(queue.idle());
  started.get_future().wait();
  EXPECT_FALSE(queue.idle());
  mayEnd.set_value();
  queue.drain();
  EXPECT_TRUE(queue.idle());
}

TEST(WorkQueue, DrainsTwiceAndTakesTasksAfterwards) {
  WorkQueue queue;
  queue.drain();
  std::atomic<int> runs{0};
  queue.post([&] { ++runs; });
  queue.drain();
  queue.drain();
  EXPECT_EQ(runs, 1);
  queue.post([&] { ++runs; });
  queue.drain();
  EXPECT_EQ(runs, 2);
}

TEST(WorkQueue, DestructionRunsWhatIsQueued) {
  std::atomic<int> runs{0};
  {
    WorkQueue queue;
    for (int i = 0; i < 50; ++i) queue.post([&] { ++runs; });
  }
  EXPECT_EQ(runs, 50);
}

TEST(WorkQueue, TakesTasksWhileOthersDrain) {
  WorkQueue queue;
  std::atomic<int> runs{0};
  std::thread poster([&] {
    for (int i = 0; i < 500; ++i) queue.post([&] { ++runs; });
  });
  std::thread drainer([&] {
    for (int i = 0; i < 100; ++i) queue.drain();
  });
  poster.join();
  drainer.join();
  queue.drain();
  EXPECT_EQ(runs, 500);
}

TEST(WorkQueue, ReleasesWhatATaskCapturedBeforeItIsIdle) {
  WorkQueue queue;
  bool gone = false;
  bool idle = true;
  // What is released may ask the queue itself.
  std::shared_ptr<void> captured(nullptr, [&](void*) {
    gone = true;
    idle = queue.idle();
  });
  queue.post([kept = std::move(captured)] { (void)kept; });
  bool goneBefore = false;
  queue.post([&] { goneBefore = gone; });
  queue.drain();
  EXPECT_TRUE(goneBefore);
  EXPECT_FALSE(idle);
}

TEST(Error, NamesEveryCodeOnce) {
  const ErrorCode codes[] = {ErrorCode::peerLost,
                             ErrorCode::timeout,
                             ErrorCode::mismatch,
                             ErrorCode::aborted,
                             ErrorCode::closed,
                             ErrorCode::unsupported,
                             ErrorCode::backendUnavailable,
                             ErrorCode::invalidArgument,
                             ErrorCode::outOfMemory,
                             ErrorCode::system};
  std::vector<std::string> names;
  for (const ErrorCode code : codes) {
    names.emplace_back(nameOf(code));
    EXPECT_EQ(names.back().rfind("ERR_", 0), 0u);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(names[i], names[j]);
  }
}

TEST(Error, SystemErrorEndsInErrnosText) {
  const Error error = systemError("mapping", ENOMEM);
  EXPECT_EQ(error.code, ErrorCode::system);
  EXPECT_EQ(error.what(), "mapping: " + std::string(std::strerror(ENOMEM)));
}

}  // namespace
}  // namespace gradlink
