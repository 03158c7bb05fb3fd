// The store without servers whose workers step a part of every key each: how keys are cut, and what
// workers have to agree on.
#include "kvstore/allreduce/shards.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/allreduce/allreduce_store.h"
#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kLengths[] = {1, 0, 31, 33, 1000, 5003};

std::shared_ptr<Optimizer> made(const std::string& name) {
  OptimizerSpec spec;
  spec.name = name;
  return Optimizer::create(spec);
}

std::vector<std::optional<Error>> errorsOf(int workers,
                                           const std::function<void(Store&, int)>& worker) {
  return onRanksTaken(workers, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store =
        makeAllreduceStore(std::move(comm), {.shardOptimizer = true, .timeoutMs = 20000});
    worker(*store, rank);
    store->stop();
  });
}

TEST(KvstoreAllreduceShards, EveryElementHasOneWorker) {
  for (const int workers : {2, 3, 4, 7}) {
    for (const std::size_t count : kLengths) {
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

TEST(KvstoreAllreduceShards, AChangeThatAWorkerThatLeftDoesNotFollowIsRefusedOnAll) {
  const auto errors = errorsOf(2, [](Store& store, int rank) {
    const KeyId key = makeKey(store, "w", Floats(100, 1));
    store.setOptimizer(made("sgd"));
    std::vector<Floats> arrays{Floats(100, 1)};
    run(store, OperationKind::push, key, arrays);
    if (rank == 1) {
      Waiter left;
      store.leave(left.ticket());
      left.wait();
      // Over when the other has left or failed.
      Waiter all;
      store.barrier(all.ticket());
      all.wait();
      return;
    }
    // Worker 1 has left once a push that it took no part in is done.
    run(store, OperationKind::push, key, arrays);
    store.setOptimizer(made("adam"));
    run(store, OperationKind::push, key, arrays);
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->code, ErrorCode::aborted);
  EXPECT_EQ(lacking(errors[0]->what(), {"the optimizer", "shardOptimizer"}), "")
      << errors[0]->what();
}

}  // namespace
}  // namespace gradlink::test
