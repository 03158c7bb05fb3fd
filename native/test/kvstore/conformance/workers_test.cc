// What several workers of one store see of one another.
#include <latch>

#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {
namespace {

using enum OperationKind;

STORES(StoreWorkers, maker.several());
STORES(StoreWorkersOfServers, maker.several() && maker.way == kServers);

TEST_P(StoreWorkers, MeetInABarrier) {
  std::atomic<int> came{0};
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    for (int turn = 1; turn <= 20; ++turn) {
      ++came;
      store.barrier();
      EXPECT_GE(came.load(), store.maker.workers * turn);
    }
  });
}

TEST_P(StoreWorkers, DoNotWaitForOneThatLeft) {
  constexpr std::size_t kCount = 1000;
  for (const bool steps : {false, true}) {
    // With servers worker 0 is who sets the optimizer and what keys begin with.
    const int leaver = steps && GetParam().way != kServers ? 0 : 1;
    onEveryStore(GetParam(), [&](const AnyStore& store) {
      const KeyId key = store.define("w", Floats(kCount));
      if (steps) store.store.setOptimizer(momentumOf(0.5));
      std::vector<Floats> both = store.everywhere(Floats(kCount, 1));
      store.run({{pushPull, key, {}, &both}});
      const float all = store.arraysAsFloat();
      EXPECT_EQ(both, store.everywhere(Floats(kCount, steps ? -0.5F * all : all)));
      const float left = all - static_cast<float>(store.devices());
      // The momentum is half of what it was, and what they push.
      const float stepped = -0.5F * all - (0.25F * all + 0.5F * left);
      if (store.rank != leaver) {
        both = store.everywhere(Floats(kCount, 1));
        store.run({{pushPull, key, {}, &both}});
        EXPECT_EQ(both, store.everywhere(Floats(kCount, steps ? stepped : left)));
        const KeyId later = store.define("later", Floats(3, 5));
        EXPECT_EQ(store.pulled(later, 3), store.everywhere(Floats(3, 5)));
      }
      store.wait(store.leave);
      EXPECT_THROW(store.run({{push, key, both}}), Error);
      store.barrier();
      // It may still pull.
      EXPECT_EQ(store.pulled(key, kCount),
                store.everywhere(Floats(kCount, steps ? stepped : left)));
    });
  }
}

TEST_P(StoreWorkers, ThatDefineDifferentlyAreAMismatch) {
  struct Defined {
    const char* name;
    std::size_t count;
    std::size_t rowLength;
  };
  for (const Defined& other : {Defined{"v", 30, 3}, {"w", 45, 3}, {"w", 30, 5}}) {
    const auto errors = onStores(GetParam(), [&](const AnyStore& store) {
      const Defined& one = store.rank == 0 ? Defined{"w", 30, 3} : other;
      store.define(one.name, Floats(one.count), one.rowLength);
      store.barrier();
    });
    for (int rank = 0; rank < GetParam().workers; ++rank) {
      const auto& error = errors[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(error.has_value()) << rank << " " << other.name << other.count;
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
      if (other.count != 30) {
        EXPECT_EQ(lacking(error->what(), {" 30 ", " 45 "}), "") << error->what();
      }
    }
  }
}

TEST_P(StoreWorkersOfServers, ArePushedForBeforeTheOthersPush) {
  for (const std::size_t count : {100, 100'000}) {
    std::latch pushed(1);
    onEveryStore(GetParam(), [&](const AnyStore& store) {
      const KeyId key = store.define("w", Floats(count));
      std::vector<Floats> out = store.everywhere(Floats(count));
      if (store.rank != 0) pushed.wait();
      // In one call: the pull, which waits for all workers, may not hold the push up.
      Waiter first;
      Waiter second;
      RunningSteps<Floats> running =
          store.begin({{push, key, ownOf(store, 0, count)}, {pull, key, {}, &out}}, false,
                      [&](std::size_t step) { return (step == 0 ? first : second).ticket(); });
      first.wait();
      if (store.rank == 0) pushed.count_down();
      second.wait();
      running.check();
      EXPECT_EQ(out, sumsOf(store, 0, count));
    });
  }
}

}  // namespace
}  // namespace gradlink::test
