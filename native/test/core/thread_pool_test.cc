#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "core/thread_pool.h"

namespace gradlink {
namespace {

TEST(ThreadPool, RunsEveryPartOnce) {
  for (std::size_t parts : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> seen(parts);
    ThreadPool::shared().parallel(parts, [&](std::size_t part) { ++seen[part]; });
    for (std::size_t part = 0; part < parts; ++part)
      EXPECT_EQ(seen[part], 1) << part << " of " << parts;
  }
}

TEST(ThreadPool, WritesOfPartsAreSeenAfterTheCall) {
  std::vector<int> plain(257);
  for (int round = 1; round <= 2000; ++round) {
    ThreadPool::shared().parallel(plain.size(), [&](std::size_t part) { plain[part] = round; });
    ASSERT_EQ(std::accumulate(plain.begin(), plain.end(), 0), round * 257);
  }
}

TEST(ThreadPool, TakesCallsFromSeveralThreadsAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<long> total{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<int> mine{0};
        ThreadPool::shared().parallel(8, [&](std::size_t) { ++mine; });
        EXPECT_EQ(mine, 8);
        total += mine;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 300 * 8);
}

TEST(ThreadPool, NestedCallRunsInOrderOnTheSameThread) {
  ThreadPool::shared().parallel(4, [&](std::size_t) {
    const auto self = std::this_thread::get_id();
    std::vector<std::size_t> order;
    ThreadPool::shared().parallel(3, [&](std::size_t inner) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      order.push_back(inner);
    });
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
  });
}

TEST(ThreadPool, UsesAnotherThreadWhereThereIsOne) {
  if (ThreadPool::shared().width() == 1) {
    std::thread::id runner;
    ThreadPool::shared().parallel(2, [&](std::size_t) { runner = std::this_thread::get_id(); });
    EXPECT_EQ(runner, std::this_thread::get_id());
    return;
  }
  // Two parts that wait for each other only end when two threads run them.
  std::atomic<int> arrived{0};
  ThreadPool::shared().parallel(2, [&](std::size_t) {
    ++arrived;
    while (arrived != 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool::shared().parallel(4, [](std::size_t) {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> sum{0};
    ThreadPool::shared().parallel(100, [&](std::size_t part) { sum += static_cast<int>(part); });
    _exit(sum == 4950 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gradlink
