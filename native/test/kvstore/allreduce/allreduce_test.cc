// What the store without servers does beside what every store does (conformance).
#include "kvstore/allreduce/allreduce_store.h"

#include <gtest/gtest.h>

#include <cstdint>
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

TEST(KvstoreAllreduce, SlowAWorkerThatNeverPushesAKeyIsNamed) {
  AllreduceStoreOptions options;
  // Enough for the keys to be made in.
  options.timeoutMs = 2000;
  const auto errors = onWorkers(
      2,
      [](Store& store, int rank) {
        const KeyId a = makeKey(store, "a", Floats(2, 0));
        const KeyId b = makeKey(store, "b", Floats(2, 0));
        std::vector<Floats> arrays{Floats(2, 1)};
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
    const KeyId key = makeKey(store, "w", Floats(2, 0));
    if (rank == 1) return;
    std::vector<Floats> arrays{Floats(2, 1)};
    run(store, OperationKind::push, key, arrays);
  });
  EXPECT_FALSE(errors[1].has_value());
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(errors[static_cast<std::size_t>(rank)].has_value());
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)]->code, ErrorCode::peerLost);
  }
}

TEST(KvstoreAllreduce, OnlyRowsTravelOfAPushOfRows) {
  expectNone(onWorkers(2, [](Store& store, int /*rank*/) {
    const KeyId key = store.define("w", DType::float32, 150, 3);
    const std::uint64_t before = store.report().sums->bytesReduced;
    const Floats rows(9, 1);
    for (const std::vector<std::int64_t>& brought : {std::vector<std::int64_t>{8, 3, 8}, {}}) {
      Waiter waiter;
      Operation push;
      push.key = key;
      push.in = {rows.data()};
      push.inRows = {brought};
      push.ticket = waiter.ticket();
      submitOne(store, std::move(push));
      waiter.wait();
      // Two rows of 12 bytes and their numbers, at a cache line; then none.
      EXPECT_EQ(store.report().sums->bytesReduced - before, 64U);
    }
  }));
}

}  // namespace
}  // namespace gradlink::test
