// Which operations a store does before which: urgency, fences, stopping, and keys that wait.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "kvstore/local/local_store.h"
#include "test/folder.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

/// An updater that holds its key until released, and keeps the order of what came.
class HeldUpdater final : public ExternalUpdater {
 public:
  void update(const UpdateRequest& request, std::function<void(std::exception_ptr)> done) override {
    const std::lock_guard lock(mutex_);
    keys_.push_back(request.key);
    done_.push_back(std::move(done));
    arrived_.release();
  }
  void awaitCall() { arrived_.acquire(); }
  /// Each is told its own exception, handed over: ThreadSanitizer does not see how the library
  /// counts its owners.
  void release(const char* failure = nullptr) {
    std::vector<std::function<void(std::exception_ptr)>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(done_);
    }
    for (auto& done : all) {
      done(failure == nullptr
               ? nullptr
               : std::make_exception_ptr(Error(ErrorCode::invalidArgument, failure)));
    }
  }

 private:
  std::mutex mutex_;
  std::vector<KeyId> keys_;
  std::vector<std::function<void(std::exception_ptr)>> done_;
  std::counting_semaphore<> arrived_{0};
};

/// Keeps the shared pool's threads from helping, so that a store works through its queue alone and
/// the order in which operations end is the order in which they began.
class PoolHeld {
 public:
  PoolHeld() {
    const int width = ThreadPool::shared().width();
    std::latch all(width);
    holder_ = std::thread([this, width, &all] {
      ThreadPool::shared().parallel(static_cast<std::size_t>(width), [&](std::size_t) {
        all.count_down();
        release_.wait();
      });
    });
    all.wait();
  }
  ~PoolHeld() {
    release_.count_down();
    holder_.join();
  }

 private:
  std::latch release_{1};
  std::thread holder_;
};

/// Tells in which order operations ended.
class Ended {
 public:
  explicit Ended(int operations) : left_(operations) {}

  std::shared_ptr<Ticket> note(int value) {
    return std::make_shared<Ticket>([this, value](std::exception_ptr) {
      const std::lock_guard lock(mutex_);
      values_.push_back(value);
      left_.count_down();
    });
  }
  std::vector<int> inOrder() {
    left_.wait();
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  std::mutex mutex_;
  std::vector<int> values_;
  std::latch left_;
};

TEST(StoreOrder, RunsMoreUrgentKeysFirstAndEachKeyInOrder) {
  const PoolHeld alone;
  LocalStore store(Placement::devices, 1);
  const auto gate = std::make_shared<HeldUpdater>();
  std::vector<KeyId> keys;
  for (int i = 0; i < 5; ++i) keys.push_back(makeKey(store, std::to_string(i), Floats(8)));
  std::vector<Floats> one(1, Floats(8, 1));
  // A fence holds everything back until it is told to go on, so that all are queued before the
  // first begins.
  store.setUpdater(gate);
  Waiter held;
  submitOne(store, operation(OperationKind::push, keys[0], one, held.ticket()));
  gate->awaitCall();
  store.setUpdater(nullptr);
  Waiter fence;
  store.barrier(fence.ticket());
  Ended ended(10);
  std::vector<std::vector<Floats>> targets(5, std::vector<Floats>(1, Floats(8)));
  std::vector<Operation> operations;
  // The last key's urgent pull takes its push along.
  const std::int32_t priorities[] = {-5, 0, 10, 3, 20};
  for (int i = 0; i < 5; ++i) {
    const std::int32_t ofPush = i == 4 ? -9 : priorities[i];
    operations.push_back(operation(OperationKind::push, keys[i], one, ended.note(i), ofPush));
    operations.push_back(
        operation(OperationKind::pull, keys[i], targets[i], ended.note(10 + i), priorities[i]));
  }
  store.submit(std::move(operations));
  gate->release();
  held.wait();
  EXPECT_EQ(ended.inOrder(), (std::vector<int>{4, 14, 2, 12, 3, 13, 1, 11, 0, 10}));
}

/// Keeps the store's thread in an update until released.
class BlockingUpdater final : public ExternalUpdater {
 public:
  void update(const UpdateRequest& /*request*/,
              std::function<void(std::exception_ptr)> done) override {
    arrived.release();
    go.acquire();
    done(nullptr);
  }
  std::binary_semaphore arrived{0};
  std::binary_semaphore go{0};
};

TEST(StoreOrder, WhatComesWhileAKeyIsUnderWayIsAsUrgentAsItsMostUrgent) {
  const PoolHeld alone;
  LocalStore store(Placement::devices, 1);
  const auto busy = std::make_shared<BlockingUpdater>();
  const KeyId first = makeKey(store, "first", Floats(8));
  const KeyId second = makeKey(store, "second", Floats(8));
  std::vector<Floats> one(1, Floats(8, 1));
  std::vector<Floats> out(1, Floats(8));
  store.setUpdater(busy);
  Waiter held;
  submitOne(store, operation(OperationKind::push, first, one, held.ticket()));
  busy->arrived.acquire();
  Ended ended(3);
  std::vector<Operation> operations;
  operations.push_back(operation(OperationKind::pull, first, out, ended.note(1), 0));
  operations.push_back(operation(OperationKind::pull, second, out, ended.note(2), 5));
  operations.push_back(operation(OperationKind::pull, first, out, ended.note(3), 9));
  store.submit(std::move(operations));
  busy->go.release();
  held.wait();
  EXPECT_EQ(ended.inOrder(), (std::vector<int>{1, 3, 2}));
}

TEST(StoreOrder, OtherKeysGoOnWhileAnUpdaterHoldsOne) {
  LocalStore store(Placement::devices, 1);
  const auto gate = std::make_shared<HeldUpdater>();
  const KeyId slow = makeKey(store, "slow", Floats(4));
  const KeyId quick = makeKey(store, "quick", Floats(4, 5));
  std::vector<Floats> one(1, Floats(4, 1));
  std::vector<Floats> out(1, Floats(4));
  store.setUpdater(gate);
  Waiter held;
  submitOne(store, operation(OperationKind::push, slow, one, held.ticket()));
  gate->awaitCall();
  run(store, OperationKind::pull, quick, out);
  EXPECT_EQ(out[0], Floats(4, 5));
  gate->release("no");
  EXPECT_THROW(held.wait(), Error);
  // The failure was that push's alone.
  run(store, OperationKind::pull, slow, out);
  EXPECT_EQ(out[0], Floats(4, 0));
}

TEST(StoreOrder, ManyKeysFromManyRoundsKeepTheirOrder) {
  LocalStore store(Placement::devices, 2);
  constexpr int kKeys = 40;
  constexpr int kRounds = 25;
  std::vector<KeyId> keys;
  for (int k = 0; k < kKeys; ++k) {
    keys.push_back(makeKey(store, std::to_string(k), Floats(k % 4 == 0 ? 70'001 : 17)));
  }
  std::vector<std::vector<std::vector<Floats>>> pushed(kRounds);
  std::vector<std::vector<std::vector<Floats>>> pulled(kRounds);
  Waiter waiter;
  const auto ticket = waiter.ticket();
  std::vector<Operation> operations;
  for (int r = 0; r < kRounds; ++r) {
    for (int k = 0; k < kKeys; ++k) {
      const std::size_t count = k % 4 == 0 ? 70'001 : 17;
      pushed[r].emplace_back(2, Floats(count, static_cast<float>(r * kKeys + k)));
      pulled[r].emplace_back(1, Floats(count, -1));
    }
    for (int k = 0; k < kKeys; ++k) {
      operations.push_back(operation(OperationKind::push, keys[k], pushed[r][k], ticket, k % 3));
      operations.push_back(operation(OperationKind::pull, keys[k], pulled[r][k], ticket, k % 5));
    }
  }
  store.submit(std::move(operations));
  waiter.wait();
  for (int r = 0; r < kRounds; ++r) {
    for (int k = 0; k < kKeys; ++k) {
      const Floats& got = pulled[r][k][0];
      ASSERT_EQ(got, Floats(got.size(), 2.0f * static_cast<float>(r * kKeys + k))) << r << " " << k;
    }
  }
}

TEST(StoreOrder, ABarrierWaitsForWhatIsHeld) {
  LocalStore store(Placement::devices, 1);
  const auto gate = std::make_shared<HeldUpdater>();
  const KeyId key = makeKey(store, "a", Floats(4));
  std::vector<Floats> one(1, Floats(4, 1));
  store.setUpdater(gate);
  Waiter held;
  submitOne(store, operation(OperationKind::push, key, one, held.ticket()));
  gate->awaitCall();
  std::promise<void> passed;
  std::future<void> future = passed.get_future();
  store.barrier(std::make_shared<Ticket>([&](std::exception_ptr) { passed.set_value(); }));
  // Only a broken barrier would use the time given to it.
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gate->release();
  held.wait();
  future.wait();
}

TEST(StoreOrder, AFenceSeesAllBeforeAndNothingAfter) {
  LocalStore store(Placement::devices, 1);
  const KeyId key = makeKey(store, "a", Floats(200'000));
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers = {{"momentum", 0.9}, {"learningRate", 0.1}};
  store.setOptimizer(Optimizer::create(spec));
  std::vector<Floats> one(1, Floats(200'000, 1));
  std::vector<Floats> out(1, Floats(200'000));
  std::vector<Floats> expected(1, Floats(200'000));
  const TestFolder folder;
  const std::string file = folder.file("states");
  Waiter first;
  Waiter saved;
  Waiter last;
  pushTimes(store, key, one, 3, first.ticket());
  store.saveStates(file, true, saved.ticket());
  pushTimes(store, key, one, 2, last.ticket());
  first.wait();
  saved.wait();
  last.wait();
  run(store, OperationKind::pull, key, expected);
  // The same in two stores: three pushes here, the value and the state carried over, two more
  // there.
  LocalStore before(Placement::devices, 1);
  const KeyId there = makeKey(before, "a", Floats(200'000));
  before.setOptimizer(Optimizer::create(spec));
  Waiter three;
  pushTimes(before, there, one, 3, three.ticket());
  three.wait();
  run(before, OperationKind::pull, there, out);
  LocalStore after(Placement::devices, 1);
  const KeyId other = makeKey(after, "a", out[0]);
  Waiter loaded;
  after.loadStates(file, loaded.ticket());
  loaded.wait();
  Waiter two;
  pushTimes(after, other, one, 2, two.ticket());
  two.wait();
  run(after, OperationKind::pull, other, out);
  EXPECT_EQ(out, expected);
}

TEST(StoreOrder, SlowStopDropsWhatIsQueued) {
  std::atomic<int> ended = 0;
  std::vector<Floats> large(1, Floats(1 << 20, 1));
  {
    LocalStore store(Placement::devices, 1);
    const KeyId key = makeKey(store, "a", Floats(1 << 20));
    const auto ticket = [&] {
      return std::make_shared<Ticket>([&](std::exception_ptr) { ++ended; });
    };
    for (int i = 0; i < 2000; ++i) {
      submitOne(store, operation(OperationKind::push, key, large, ticket()));
    }
    store.stop();
    const int atStop = ended;
    submitOne(store, operation(OperationKind::push, key, large, ticket()));
    EXPECT_EQ(ended, atStop);
  }
  EXPECT_LT(ended, 2000);
}

}  // namespace
}  // namespace gradlink::test
