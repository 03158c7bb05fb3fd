// The store without servers: workers as threads, each with its own order of operations.
#include "kvstore/allreduce/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

using Worker = std::function<void(AllreduceStore& store, int rank)>;

/// Runs each worker on a thread of its own and returns what each threw.
std::vector<std::optional<Error>> onWorkers(int workers, const Worker& worker,
                                            AllreduceStoreOptions options = {}) {
  if (options.timeoutMs == AllreduceStoreOptions{}.timeoutMs) options.timeoutMs = 20000;
  return onRanksTaken(workers, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store = makeAllreduceStore(std::move(comm), options);
    worker(*store, rank);
    store->stop();
  });
}

Floats pulled(Store& store, KeyId key, std::size_t count) {
  std::vector<Floats> out{Floats(count, -1.F)};
  run(store, OperationKind::pull, key, out);
  return out.front();
}

std::shared_ptr<Optimizer> sgdOptimizer(double rate) {
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers["learningRate"] = rate;
  return Optimizer::create(spec);
}

Floats ofSize(std::size_t count, float value) { return Floats(count, value); }

TEST(KvstoreAllreduce, ValuesComeFromWorkerZeroAndPushesAreSummedOverAllDevices) {
  for (const int workers : {1, 2, 3, 4, 7}) {
    expectNone(onWorkers(workers, [&](AllreduceStore& store, int rank) {
      const KeyId key = makeKey(store, "w", ofSize(5, static_cast<float>(rank) + 4));
      EXPECT_EQ(pulled(store, key, 5), ofSize(5, 4));
      std::vector<Floats> arrays{ofSize(5, static_cast<float>(rank)), ofSize(5, 1)};
      run(store, OperationKind::push, key, arrays);
      const int sum = workers * (workers - 1) / 2 + workers;
      EXPECT_EQ(pulled(store, key, 5), ofSize(5, static_cast<float>(sum)));
    }));
  }
}

TEST(KvstoreAllreduce, WorkersMayIssueKeysInAnyOrder) {
  constexpr int kKeys = 40;
  constexpr int kRounds = 10;
  constexpr int kWorkers = 3;
  expectNone(onWorkers(kWorkers, [&](AllreduceStore& store, int rank) {
    std::vector<KeyId> keys;
    for (int i = 0; i < kKeys; ++i) {
      keys.push_back(makeKey(store, std::to_string(i), ofSize(static_cast<std::size_t>(i), 0)));
    }
    std::vector<int> order(kKeys);
    std::iota(order.begin(), order.end(), 0);
    if (rank == 1) std::reverse(order.begin(), order.end());
    if (rank == 2) std::rotate(order.begin(), order.begin() + 17, order.end());
    for (int round = 1; round <= kRounds; ++round) {
      std::vector<std::vector<Floats>> arrays(kKeys);
      std::vector<Waiter> waiters(kKeys);
      for (const int i : order) {
        const auto at = static_cast<std::size_t>(i);
        arrays[at] = {ofSize(at, static_cast<float>(round))};
        submitOne(store, operation(OperationKind::push, keys[at], arrays[at], waiters[at].ticket(),
                                   i * (rank - 1)));
      }
      for (Waiter& waiter : waiters) waiter.wait();
      for (const int i : order) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(pulled(store, keys[at], at), ofSize(at, static_cast<float>(kWorkers * round)));
      }
    }
  }));
}

TEST(KvstoreAllreduce, LargeArraysAndSmallOnesTogether) {
  AllreduceStoreOptions options;
  options.fuseBytes = 4096;
  const std::vector<std::size_t> sizes{1, 300000, 0, 17, 1024, 1025, 70000};
  expectNone(onWorkers(
      2,
      [&](AllreduceStore& store, int rank) {
        std::vector<KeyId> keys;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          keys.push_back(makeKey(store, "k" + std::to_string(i), ofSize(sizes[i], 1)));
        }
        std::vector<Operation> operations;
        Waiter waiter;
        const auto ticket = waiter.ticket();
        std::vector<std::vector<Floats>> in;
        std::vector<std::vector<Floats>> out;
        in.reserve(sizes.size());
        out.reserve(sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          in.push_back({ofSize(sizes[i], static_cast<float>(i) + static_cast<float>(rank))});
          out.push_back({Floats(sizes[i])});
          Operation both = operation(OperationKind::pushPull, keys[i], in.back(), ticket);
          both.out = {out.back().front().data()};
          operations.push_back(std::move(both));
        }
        store.submit(std::move(operations));
        waiter.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          EXPECT_EQ(out[i].front(), ofSize(sizes[i], 2 * static_cast<float>(i) + 1)) << i;
        }
      },
      options));
}

TEST(KvstoreAllreduce, TheOptimizerRunsOnEveryWorkerAndItsStatesAreSavedOnce) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("gradlink-allreduce-" + std::to_string(getpid())))
          .string();
  expectNone(onWorkers(3, [&](AllreduceStore& store, int rank) {
    const KeyId key = makeKey(store, "w", ofSize(3, 10));
    store.setOptimizer(sgdOptimizer(0.5));
    std::vector<Floats> arrays{ofSize(3, static_cast<float>(rank) + 1)};
    run(store, OperationKind::push, key, arrays);
    EXPECT_EQ(pulled(store, key, 3), ofSize(3, 7));
    Waiter rate;
    store.setLearningRate(1, rate.ticket());
    rate.wait();
    run(store, OperationKind::push, key, arrays);
    EXPECT_EQ(pulled(store, key, 3), ofSize(3, 1));
    Waiter save;
    store.saveStates(file, true, save.ticket());
    save.wait();
    EXPECT_TRUE(std::filesystem::exists(file));
    Waiter load;
    store.loadStates(file, load.ticket());
    load.wait();
  }));
  std::filesystem::remove(file);
}

TEST(KvstoreAllreduce, AnErrorOfAnOperationIsItsOwn) {
  expectNone(onWorkers(2, [](AllreduceStore& store, int /*rank*/) {
    const KeyId floats = makeKey(store, "floats", ofSize(2, 0));
    const KeyId ints = store.define("ints", DType::int32, 2, 1);
    std::vector<Floats> value{ofSize(2, 0)};
    run(store, OperationKind::init, ints, value);
    store.setOptimizer(sgdOptimizer(1));
    std::vector<Floats> arrays{ofSize(2, 1)};
    try {
      run(store, OperationKind::push, ints, arrays);
      ADD_FAILURE() << "an int key was updated";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalidArgument);
    }
    run(store, OperationKind::push, floats, arrays);
    EXPECT_EQ(pulled(store, floats, 2), ofSize(2, -2));
  }));
}

TEST(KvstoreAllreduce, OtherKeysOnOtherWorkersAreAMismatchOnAll) {
  const auto errors = onWorkers(2, [](AllreduceStore& store, int rank) {
    makeKey(store, rank == 0 ? "a" : "b", ofSize(2, 0));
  });
  expectAll(errors, ErrorCode::mismatch);
}

TEST(KvstoreAllreduce, SlowAWorkerThatNeverPushesAKeyIsNamed) {
  AllreduceStoreOptions options;
  // Enough for the keys to be made in.
  options.timeoutMs = 2000;
  const auto errors = onWorkers(
      2,
      [](AllreduceStore& store, int rank) {
        const KeyId a = makeKey(store, "a", ofSize(2, 0));
        const KeyId b = makeKey(store, "b", ofSize(2, 0));
        std::vector<Floats> arrays{ofSize(2, 1)};
        run(store, OperationKind::push, rank == 0 ? a : b, arrays);
      },
      options);
  ASSERT_TRUE(errors[0].has_value());
  ASSERT_TRUE(errors[1].has_value());
  const bool first = errors[0]->code == ErrorCode::timeout;
  const Error& named = *errors[first ? 0 : 1];
  EXPECT_EQ(named.code, ErrorCode::timeout);
  EXPECT_NE(std::string(named.what()).find(first ? "key a" : "key b"), std::string::npos)
      << named.what();
}

TEST(KvstoreAllreduce, AWorkerThatClosedIsLost) {
  const auto errors = onWorkers(3, [](AllreduceStore& store, int rank) {
    const KeyId key = makeKey(store, "w", ofSize(2, 0));
    if (rank == 1) return;
    std::vector<Floats> arrays{ofSize(2, 1)};
    run(store, OperationKind::push, key, arrays);
  });
  EXPECT_FALSE(errors[1].has_value());
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(errors[static_cast<std::size_t>(rank)].has_value());
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)]->code, ErrorCode::peerLost);
  }
}

TEST(KvstoreAllreduce, AWorkerThatLeavesIsNoLongerWaitedFor) {
  expectNone(onWorkers(3, [](AllreduceStore& store, int rank) {
    const KeyId key = makeKey(store, "w", ofSize(2, 0));
    std::vector<Floats> arrays{ofSize(2, 1)};
    run(store, OperationKind::push, key, arrays);
    if (rank != 1) {
      for (int i = 0; i < 5; ++i) run(store, OperationKind::push, key, arrays);
      EXPECT_EQ(pulled(store, key, 2), ofSize(2, 2));
      const KeyId later = makeKey(store, "later", ofSize(3, 5));
      EXPECT_EQ(pulled(store, later, 3), ofSize(3, 5));
    }
    Waiter left;
    store.leave(left.ticket());
    left.wait();
    EXPECT_THROW(run(store, OperationKind::push, key, arrays), Error);
    Waiter all;
    store.barrier(all.ticket());
    all.wait();
    EXPECT_EQ(pulled(store, key, 2), ofSize(2, 2));
  }));
}

TEST(KvstoreAllreduce, StoppingDropsWhatIsQueued) {
  const auto errors = onWorkers(2, [](AllreduceStore& store, int rank) {
    const KeyId key = makeKey(store, "w", ofSize(2, 0));
    if (rank == 1) return;
    std::vector<Floats> arrays{ofSize(2, 1)};
    Waiter never;
    submitOne(store, operation(OperationKind::push, key, arrays, never.ticket()));
  });
  expectNone(errors);
}

}  // namespace
}  // namespace gradlink::test
