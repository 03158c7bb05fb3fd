// What the store without servers does beside what every store does (stores_test.cc).
#include "kvstore/allreduce/allreduce_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

Floats pulled(Store& store, KeyId key, std::size_t count) {
  std::vector<Floats> out{Floats(count, -1.F)};
  run(store, OperationKind::pull, key, out);
  return out.front();
}

Floats ofSize(std::size_t count, float value) { return Floats(count, value); }

TEST(KvstoreAllreduce, OtherKeysOnOtherWorkersAreAMismatchOnAll) {
  const auto errors = onWorkers(
      2, [](Store& store, int rank) { makeKey(store, rank == 0 ? "a" : "b", ofSize(2, 0)); });
  expectAll(errors, ErrorCode::mismatch);
}

TEST(KvstoreAllreduce, SlowAWorkerThatNeverPushesAKeyIsNamed) {
  AllreduceStoreOptions options;
  // Enough for the keys to be made in.
  options.timeoutMs = 2000;
  const auto errors = onWorkers(
      2,
      [](Store& store, int rank) {
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
  const auto errors = onWorkers(3, [](Store& store, int rank) {
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
  expectNone(onWorkers(3, [](Store& store, int rank) {
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
  const auto errors = onWorkers(2, [](Store& store, int rank) {
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
