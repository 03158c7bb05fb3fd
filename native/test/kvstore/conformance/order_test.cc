// Which operations a store does before which: keys apart from one another, each in its order,
// urgency, fences, and what a stop drops.
#include <numeric>

#include "test/kvstore/conformance/held.h"

namespace gradlink::test {
namespace {

using enum OperationKind;

STORES(StoreOrder, true);
STORES(StoreOrderInPlace, !maker.onGpus && !maker.shared && maker.way != kAllReduce);
STORES(StoreOrderHeld, maker.canBeHeld());
STORES(StoreOrderOfEnds, maker.canBeHeld() && maker.endsAsBegun());
STORES(StoreOrderOfPulls, maker.canBeHeld() && maker.endsAsBegun() && maker.way != kAllReduce);
STORES(StoreOrderWithUpdaters, maker.takesUpdaters());

TEST_P(StoreOrder, KeysOfOneCallKeepApartInWhateverOrder) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kKeys = 30;
    constexpr int kRounds = 3;
    const auto countOf = [](std::size_t k) {
      constexpr std::size_t kCounts[] = {0, 10, 499, 1024, 1025, 6000, 18'000};
      return kCounts[k % std::size(kCounts)];
    };
    const auto valueOf = [](std::size_t k, int round) {
      return static_cast<float>(k + 100 * static_cast<std::size_t>(round));
    };
    std::vector<KeyId> keys;
    for (std::size_t k = 0; k < kKeys; ++k) {
      keys.push_back(store.define(std::to_string(k), Floats(countOf(k))));
    }
    std::vector<std::size_t> order(kKeys);
    std::iota(order.begin(), order.end(), 0);
    if (store.rank == 1) std::reverse(order.begin(), order.end());
    if (store.rank == 2) std::rotate(order.begin(), order.begin() + 17, order.end());
    std::vector<std::vector<Floats>> out(kRounds * kKeys);
    std::vector<Step> steps;
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t k : order) {
        steps.push_back({push, keys[k], store.everywhere(Floats(countOf(k), valueOf(k, round)))});
        steps.back().priority = static_cast<int>(k % 5) * (store.rank - 1);
      }
      for (std::size_t k = 0; k < kKeys; ++k) {
        std::vector<Floats>& one = out[static_cast<std::size_t>(round) * kKeys + k];
        one = store.everywhere(Floats(countOf(k), -1));
        steps.push_back({pull, keys[k], {}, &one, static_cast<int>(k % 3)});
      }
    }
    store.run(std::move(steps));
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t k = 0; k < kKeys; ++k) {
        const float sum = store.arraysAsFloat() * valueOf(k, round);
        EXPECT_EQ(out[static_cast<std::size_t>(round) * kKeys + k],
                  store.everywhere(Floats(countOf(k), sum)))
            << k << " in round " << round;
      }
    }
  });
}

TEST_P(StoreOrder, OperationsOnOneKeyKeepTheirOrder) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kTimes = 20;
    const KeyId key = store.define("a", Floats(1000));
    std::vector<std::vector<Floats>> out(kTimes, store.everywhere(Floats(1000, -1)));
    std::vector<RunningSteps<Floats>> running;
    running.reserve(kTimes);
    for (std::size_t i = 0; i < kTimes; ++i) {
      const int urgency = static_cast<int>(i);
      const std::vector<Floats> in = store.everywhere(Floats(1000, static_cast<float>(i + 1)));
      running.push_back(
          store.begin({{push, key, in, nullptr, -urgency}, {pull, key, {}, &out[i], urgency}}));
    }
    for (RunningSteps<Floats>& one : running) one.wait();
    for (std::size_t i = 0; i < kTimes; ++i) {
      const float sum = static_cast<float>(i + 1) * store.arraysAsFloat();
      EXPECT_EQ(out[i], store.everywhere(Floats(1000, sum))) << i;
    }
  });
}

// Of stores that may use an array again while a pull into it is under way. Exact: powers of small
// numbers.
TEST_P(StoreOrderInPlace, RoundsInTheSameArraysFollowOneAnother) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr int kRounds = 6;
    std::map<KeyId, std::vector<Floats>> arrays;
    for (const std::size_t count : {16, 30'000}) {
      arrays[store.define(std::to_string(count), Floats(count))] =
          store.everywhere(Floats(count, 1));
    }
    std::vector<Step> steps;
    for (int round = 0; round < kRounds; ++round) {
      for (auto& [key, own] : arrays) steps.push_back({push, key, {}, &own});
      for (auto& [key, own] : arrays) steps.push_back({pull, key, {}, &own});
    }
    store.run(std::move(steps));
    for (const auto& [key, own] : arrays) {
      const float right = static_cast<float>(std::pow(store.arrays(), kRounds));
      EXPECT_EQ(own, store.everywhere(Floats(own[0].size(), right)));
    }
  });
}

TEST_P(StoreOrder, SettingsTakeEffectBetweenWhatIsBeforeAndAfterThem) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    for (const std::size_t count : {100, 100'000}) {
      const KeyId key = store.define(std::to_string(count), Floats(count, 1));
      std::vector<std::vector<Floats>> out(6, store.everywhere(Floats(count, -1)));
      std::vector<RunningSteps<Floats>> running;
      const auto pushed = [&](float value) {
        const std::size_t at = running.size();
        running.push_back(store.begin(
            {{push, key, store.everywhere(Floats(count, value))}, {pull, key, {}, &out[at]}}));
      };
      // Nothing is waited for between.
      pushed(2);
      store.store.setOptimizer(momentumOf(0.5));
      pushed(4);
      Waiter rate;
      store.store.setLearningRate(0.25, rate.ticket());
      pushed(4);
      pushed(4);
      store.store.setOptimizer(nullptr);
      pushed(3);
      store.store.setOptimizer(momentumOf(0.5));
      pushed(4);
      store.store.setOptimizer(nullptr);
      for (RunningSteps<Floats>& one : running) one.wait();
      rate.wait();
      const float n = store.arraysAsFloat();
      // The momentum is kept where the rate changes, and is another optimizer's no more.
      const float values[] = {2 * n, 0, -2 * n, -4 * n, 3 * n, n};
      for (std::size_t i = 0; i < std::size(values); ++i) {
        EXPECT_EQ(out[i], store.everywhere(Floats(count, values[i]))) << count << ", push " << i;
      }
    }
  });
}

/// The pushes of keys in the order in which they were done, where no other thread helps.
std::vector<int> doneInOrder(const AnyStore& store, std::latch& open,
                             const std::vector<std::int32_t>& ofPushes,
                             const std::vector<std::int32_t>& ofPulls) {
  const std::size_t count = ofPushes.size();
  std::vector<KeyId> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(store.define(std::to_string(i), Floats(8)));
  }
  std::vector<std::vector<Floats>> out(count, store.everywhere(Floats(8)));
  const auto valueOf = [](std::size_t i) { return static_cast<float>(i) + 1; };
  Told told;
  Gate gate(store, open);
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    steps.push_back({push, keys[i], store.everywhere(Floats(8, valueOf(i))), nullptr, ofPushes[i]});
    steps.push_back({pull, keys[i], {}, &out[i], ofPulls[i]});
  }
  RunningSteps<Floats> running = store.begin(std::move(steps), false, [&](auto step) {
    return told.ticket(step % 2 == 0 ? static_cast<int>(step / 2) : -1);
  });
  gate.open();
  std::vector<int> order = told.values(2 * count);
  running.check();
  for (std::size_t i = 0; i < count; ++i) {
    const Floats sum(8, store.arraysAsFloat() * valueOf(i));
    EXPECT_EQ(out[i], store.everywhere(sum)) << i;
  }
  std::erase(order, -1);
  return order;
}

TEST_P(StoreOrderOfEnds, MostUrgentKeysFirst) {
  const PoolHeld alone;
  std::latch open(1);
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const std::vector<std::int32_t> priorities{-5, 0, 10, 3};
    const auto order = doneInOrder(store, open, priorities, priorities);
    if (store.rank == 0) {
      EXPECT_EQ(order, (std::vector<int>{2, 3, 1, 0}));
    }
  });
}

TEST_P(StoreOrderOfPulls, AnUrgentPullTakesItsPushAlong) {
  const PoolHeld alone;
  std::latch open(1);
  onEveryStore(GetParam(), [&](const AnyStore& store) {
    const auto order = doneInOrder(store, open, {0, 10, -9}, {0, 10, 20});
    if (store.rank == 0) {
      EXPECT_EQ(order, (std::vector<int>{2, 1, 0}));
    }
  });
}

TEST_P(StoreOrderHeld, StopDropsWhatIsQueued) {
  std::latch open(1);
  auto errors = onStores(GetParam(), [&](const AnyStore& store) {
    const KeyId key = store.define("a", Floats(1000));
    std::vector<Floats> out = store.everywhere(Floats(1000));
    if (store.several() && store.rank != 0) return open.wait();
    Told told;
    const auto updater = std::make_shared<HeldUpdater>();
    if (!store.several()) store.store.setUpdater(updater);
    // Nobody lets the first go on: no updater, and no worker whose part it waits for.
    const auto submitted = [&] {
      return store.begin(
          {{pushPull, key, {}, &out}, {push, key, store.everywhere(Floats(1000, 1))}}, false,
          [&](std::size_t step) { return told.ticket(static_cast<int>(step)); });
    };
    const RunningSteps<Floats> running = submitted();
    if (!store.several()) updater->awaitCall();
    store.store.stop();
    store.store.stop();
    const RunningSteps<Floats> after = submitted();
    open.count_down();
    EXPECT_EQ(told.values(), std::vector<int>{});
  });
  // Servers may tell that the others have not pushed what this worker has.
  errors.resize(static_cast<std::size_t>(GetParam().workers));
  expectNone(errors);
}

TEST_P(StoreOrderWithUpdaters, OtherKeysGoOnWhileOneIsHeldAndAFailureIsItsPushsAlone) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const auto updater = std::make_shared<HeldUpdater>();
    const KeyId slow = store.define("slow", Floats(4));
    const KeyId quick = store.define("quick", Floats(4, 5));
    const std::vector<Floats> one = store.everywhere(Floats(4, 1));
    store.store.setUpdater(updater);
    RunningSteps<Floats> held = store.begin({{push, slow, one}});
    updater->awaitCall();
    EXPECT_EQ(store.pulled(quick, 4), store.everywhere(Floats(4, 5)));
    updater->release("no");
    refusedBy(ErrorCode::invalidArgument, [&] { held.wait(); });
    EXPECT_EQ(store.pulled(slow, 4), store.everywhere(Floats(4)));
  });
}

TEST_P(StoreOrderWithUpdaters, ABarrierWaitsForWhatIsHeld) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const auto updater = std::make_shared<HeldUpdater>();
    std::vector<KeyId> keys;
    for (const char* name : {"a", "b", "c"}) keys.push_back(store.define(name, Floats(4)));
    store.store.setUpdater(updater);
    Told ended;
    std::vector<RunningSteps<Floats>> held;
    for (const KeyId key : keys) {
      held.push_back(store.begin({{push, key, store.everywhere(Floats(4, 1))}}, false,
                                 [&](std::size_t) { return ended.ticket(0); }));
    }
    Told told;
    store.store.barrier(told.ticket(0));
    // Whatever ends has the store look at what may begin; after the second it has looked.
    for (std::size_t i = 1; i < keys.size(); ++i) {
      updater->awaitCall();
      updater->releaseOne();
      ended.values(i);
    }
    EXPECT_TRUE(told.values().empty());
    updater->awaitCall();
    updater->release();
    told.values(1);
  });
}

/// value := 2 * value + received, on another thread.
class Doubler final : public ExternalUpdater {
 public:
  /// Before the store goes: what is called back belongs to it.
  ~Doubler() override { join(); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void update(const UpdateRequest& request, std::function<void(std::exception_ptr)> done) override {
    threads_.emplace_back([request, done = std::move(done), fail = fail.load()] {
      const auto* received = static_cast<const float*>(request.received);
      auto* stored = static_cast<float*>(request.stored);
      if (fail) {
        return done(std::make_exception_ptr(Error(ErrorCode::invalidArgument, "no").stillUsable()));
      }
      for (std::size_t i = 0; i < request.count; ++i) stored[i] = 2 * stored[i] + received[i];
      done(nullptr);
    });
  }
  std::atomic<bool> fail{false};

 private:
  std::vector<std::thread> threads_;
};

TEST_P(StoreOrderWithUpdaters, UpdatersStepTheSumAndLeaveTheValueWhereTheyFail) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kCount = 5000;
    const auto updater = std::make_shared<Doubler>();
    const KeyId key = store.define("a", Floats(kCount, 1));
    store.store.setUpdater(updater);
    Floats value(kCount, 1);
    for (int round = 0; round < 3; ++round) {
      std::vector<Floats> both = ownOf(store, round, kCount);
      store.run({{pushPull, key, {}, &both}});
      const Floats sum = sumOf(store, round, kCount);
      for (std::size_t i = 0; i < kCount; ++i) value[i] = 2 * value[i] + sum[i];
      EXPECT_EQ(both, store.everywhere(value)) << round;
    }
    updater->fail = true;
    refusedBy(ErrorCode::invalidArgument, [&] {
      store.run({{push, key, ownOf(store, 3, kCount)}});
    });
    updater->fail = false;
    EXPECT_EQ(store.pulled(key, kCount), store.everywhere(value));
    updater->join();
    store.store.setUpdater(nullptr);
    store.run({{push, key, ownOf(store, 4, kCount)}});
    EXPECT_EQ(store.pulled(key, kCount), sumsOf(store, 4, kCount));
  });
}

STORES(StoreOrderWithoutUpdaters, !maker.takesUpdaters());

TEST_P(StoreOrderWithoutUpdaters, OneIsRefused) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    refusedBy(ErrorCode::unsupported,
              [&] { store.store.setUpdater(std::make_shared<HeldUpdater>()); });
  });
}

}  // namespace
}  // namespace gradlink::test
