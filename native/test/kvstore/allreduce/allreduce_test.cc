// What the store without servers does beside what every store does (conformance).
#include "kvstore/allreduce/allreduce_store.h"

#include <unistd.h>

#include "core/forwarding_communicator.h"
#include "kvstore/allreduce/shards.h"
#include "test/folder.h"
#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

using Worker = std::function<void(Store& store, int rank)>;

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

TEST(KvstoreAllreduce, SlowAWorkerThatNeverPushesAKeyIsNamed) {
  const auto errors = onWorkers(2,
                                [](Store& store, int rank) {
                                  const KeyId a = makeKey(store, "a", Floats(2, 0));
                                  const KeyId b = makeKey(store, "b", Floats(2, 0));
                                  std::vector<Floats> arrays{Floats(2, 1)};
                                  run(store, OperationKind::push, rank == 0 ? a : b, arrays);
                                },
                                // Enough for the keys to be made in.
                                {.timeoutMs = 2000});
  ASSERT_TRUE(errors[0].has_value());
  ASSERT_TRUE(errors[1].has_value());
  const bool first = errors[0]->code == ErrorCode::timeout;
  const Error& named = *errors[first ? 0 : 1];
  EXPECT_EQ(named.code, ErrorCode::timeout);
  EXPECT_NE(std::string(named.what()).find(first ? "key a" : "key b"), std::string::npos)
      << named.what();
}

std::shared_ptr<Optimizer> optimizerWith(const std::map<std::string, double>& numbers) {
  return optimizerOf("sgd", numbers);
}

/// Two workers set what `set` sets, and push.
std::vector<std::optional<Error>> afterSetting(const Worker& set, bool sharded) {
  return onWorkers(2,
                   [&](Store& store, int rank) {
                     const KeyId key = makeKey(store, "w", Floats(2, 0));
                     set(store, rank);
                     std::vector<Floats> arrays{Floats(2, 1)};
                     run(store, OperationKind::push, key, arrays);
                   },
                   {.shardOptimizer = sharded});
}

TEST(KvstoreAllreduce, WorkersThatStepDifferentlyAreAMismatch) {
  const TestFolder folder;
  const auto rate = [](Store& store, double value) {
    waitFor([&](auto ticket) { store.setLearningRate(value, ticket); });
  };
  const Worker differences[] = {
      [](Store& store, int rank) {
        if (rank == 0) store.setOptimizer(optimizerWith({}));
      },
      [](Store& store, int rank) {
        store.setOptimizer(optimizerWith({{"rescaleGrad", rank == 0 ? 1 : 0.5}}));
      },
      [&](Store& store, int rank) {
        store.setOptimizer(optimizerWith({{"rescaleGrad", rank == 0 ? 1 : 0.5}}));
        rate(store, 0.1);
      },
      [&](Store& store, int rank) {
        store.setOptimizer(optimizerWith({}));
        rate(store, rank == 0 ? 0.1 : 0.2);
      },
      [](Store& store, int rank) {
        store.setOptimizer(optimizerWith({}));
        if (rank == 1) store.setOptimizer(nullptr);
      },
      [&](Store& store, int rank) {
        // States without the optimizer, which stays.
        store.setOptimizer(optimizerWith({}));
        const std::string file = folder.file("states");
        waitFor([&](auto ticket) { store.saveStates(file, false, ticket); });
        store.setOptimizer(optimizerWith({{"wd", rank == 0 ? 0.1 : 0.2}}));
        waitFor([&](auto ticket) { store.loadStates(file, ticket); });
      }};
  for (const bool sharded : {false, true}) {
    for (const Worker& set : differences) {
      expectAll(afterSetting(set, sharded), ErrorCode::mismatch);
    }
  }
}

TEST(KvstoreAllreduce, WorkersMayComeToTheSameStepInTheirOwnWay) {
  expectNone(afterSetting(
      [](Store& store, int rank) {
        if (rank == 0) store.setOptimizer(optimizerWith({{"momentum", 0.9}}));
        store.setOptimizer(optimizerWith({{"learningRate", 0.5}}));
        for (const double value : {0.25, 0.125}) {
          if (rank == 0 && value == 0.25) continue;
          waitFor([&](auto ticket) { store.setLearningRate(value, ticket); });
        }
      },
      false));
}

TEST(KvstoreAllreduce, AWorkerThatClosedIsLost) {
  const auto errors = onWorkers(3, [](Store& store, int rank) {
    const KeyId key = makeKey(store, "w", Floats(2, 0));
    if (rank == 1) return;
    std::vector<Floats> arrays{Floats(2, 1)};
    run(store, OperationKind::push, key, arrays);
  });
  EXPECT_FALSE(errors[1].has_value());
  expectAll({errors[0], errors[2]}, ErrorCode::peerLost);
}

/// Tells that a call has begun.
class Telling final : public ForwardingCommunicator {
 public:
  Telling(std::unique_ptr<Communicator> inner, std::atomic<bool>& called)
      : ForwardingCommunicator(std::move(inner)), called_(called) {}
  void run(const Call& call) override {
    called_ = true;
    ForwardingCommunicator::run(call);
  }

 private:
  std::atomic<bool>& called_;
};

TEST(KvstoreAllreduce, StoppingEndsACallThatWaitsForOthers) {
  std::atomic<bool> called{false};
  std::atomic<bool> stopped{false};
  const auto errors = onRanksTaken(2, [&](std::unique_ptr<Communicator> comm, int rank) {
    std::vector<Floats> arrays{Floats(2, 1)};
    const auto store = makeAllreduceStore(std::make_unique<Telling>(std::move(comm), called),
                                          {.timeoutMs = 20000});
    const KeyId key = store->define("w", DType::float32, 2, 1);
    if (rank == 1) {
      waitUntil([&] { return stopped.load(); });
      return run(*store, OperationKind::push, key, arrays);
    }
    Waiter never;
    submitOne(*store, operation(OperationKind::push, key, arrays, never.ticket()));
    waitUntil([&] { return called.load(); });
    store->stop();
    stopped = true;
  });
  EXPECT_FALSE(errors[0].has_value());
  expectAll({errors[1]}, ErrorCode::peerLost, 0);
}

TEST(KvstoreAllreduce, OnlyRowsTravelOfAPushOfRows) {
  expectNone(onWorkers(2, [](Store& store, int /*rank*/) {
    const KeyId key = store.define("w", DType::float32, 150, 3);
    const std::uint64_t before = store.report().sums->bytesReduced;
    const Floats rows(9, 1);
    for (const std::vector<std::int64_t>& brought : {std::vector<std::int64_t>{8, 3, 8}, {}}) {
      waitFor([&](auto ticket) {
        submitOne(store, {.key = key, .in = {rows.data()}, .inRows = {brought}, .ticket = ticket});
      });
      // Two rows of 12 bytes and their numbers, at a cache line; then none.
      EXPECT_EQ(store.report().sums->bytesReduced - before, 64U);
    }
  }));
}

TEST(KvstoreAllreduceShards, EveryElementHasOneWorker) {
  for (const int workers : {2, 3, 4, 7}) {
    for (const std::size_t count : {1, 0, 31, 33, 1000, 5003}) {
      const AllreduceShards shards(0, workers, nullptr);
      std::size_t next = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const auto [first, size] = shards.partOf(worker, count);
        EXPECT_EQ(first, next);
        EXPECT_LE(size, shards.roomOf(count));
        next = first + size;
      }
      EXPECT_EQ(next, count);
      // One worker's room is its share, but for what whole cache lines take.
      EXPECT_LT(shards.roomOf(count), count / static_cast<std::size_t>(workers) + 33);
    }
  }
}

TEST(KvstoreAllreduceShards, OneWorkerRefusesWhatSeveralRefuse) {
  expectNone(onWorkers(1,
                       [](Store& store, int) {
                         EXPECT_EQ(codeOf([&] { store.setOptimizer(optimizerOf("lamb")); }),
                                   ErrorCode::unsupported);
                       },
                       {.shardOptimizer = true}));
}

TEST(KvstoreAllreduceShards, StatesThatSomeWorkersLackAreNotWritten) {
  const TestFolder folder;
  const std::string file = folder.file("states");
  expectNone(onWorkers(2,
                       [&](Store& store, int rank) {
                         const KeyId key = makeKey(store, "w", Floats(100, 1));
                         std::vector<Floats> arrays{Floats(100, 1)};
                         store.setOptimizer(optimizerOf("adam"));
                         run(store, OperationKind::push, key, arrays);
                         // Which has no states yet.
                         if (rank == 1) store.setOptimizer(optimizerOf("adam"));
                         const auto error = errorOf([&] {
                           waitFor([&](auto ticket) { store.saveStates(file, false, ticket); });
                         });
                         ASSERT_EQ(error.has_value(), rank == 0);
                         if (rank == 1) return;
                         EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
                         EXPECT_TRUE(error->usable);
                         EXPECT_NE(access(file.c_str(), F_OK), 0);
                       },
                       {.shardOptimizer = true}));
}

TEST(KvstoreAllreduceShards, AChangeThatAWorkerThatLeftDoesNotFollowIsRefusedOnAll) {
  const auto errors = onWorkers(2,
                                [](Store& store, int rank) {
                                  const KeyId key = makeKey(store, "w", Floats(100, 1));
                                  store.setOptimizer(optimizerOf("sgd"));
                                  std::vector<Floats> arrays{Floats(100, 1)};
                                  run(store, OperationKind::push, key, arrays);
                                  if (rank == 1) {
                                    Waiter left;
                                    Waiter over;
                                    store.leave(left.ticket());
                                    store.barrier(over.ticket());
                                    left.wait();
                                    // When the other has left or failed, which is no error here.
                                    return over.wait();
                                  }
                                  // Worker 1 has left once a push that it took no part in is done.
                                  run(store, OperationKind::push, key, arrays);
                                  store.setOptimizer(optimizerOf("adam"));
                                  run(store, OperationKind::push, key, arrays);
                                },
                                {.shardOptimizer = true});
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_FALSE(errors[1].has_value());
  EXPECT_EQ(errors[0]->code, ErrorCode::aborted);
  EXPECT_EQ(lacking(errors[0]->what(), {"the optimizer", "shardOptimizer"}), "")
      << errors[0]->what();
}

}  // namespace
}  // namespace gradlink::test
