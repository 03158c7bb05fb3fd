// The store engine: order, priorities, fusion, fences and stopping. What JavaScript sees is tested
// in test/kvstore.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "kvstore/local_store.h"

namespace gradlink {
namespace {

using Floats = std::vector<float>;

/// Waits for a ticket, and throws what it failed with.
class Waiter {
 public:
  std::shared_ptr<Ticket> ticket() {
    return std::make_shared<Ticket>([promise = promise_](std::exception_ptr error) {
      if (error) {
        promise->set_exception(std::move(error));
      } else {
        promise->set_value();
      }
    });
  }
  void wait() { promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
};

Operation operation(OperationKind kind, KeyId key, std::vector<Floats>& arrays,
                    std::shared_ptr<Ticket> ticket, std::int32_t priority = 0) {
  Operation made;
  made.kind = kind;
  made.key = key;
  made.priority = priority;
  made.ticket = std::move(ticket);
  for (Floats& array : arrays) {
    if (kind == OperationKind::pull) {
      made.out.push_back(array.data());
    } else {
      made.in.push_back(array.data());
    }
  }
  return made;
}

void submitOne(Store& store, Operation made, bool here = false) {
  std::vector<Operation> operations;
  operations.push_back(std::move(made));
  store.submit(std::move(operations), here);
}

void run(Store& store, OperationKind kind, KeyId key, std::vector<Floats>& arrays,
         bool here = false) {
  Waiter waiter;
  submitOne(store, operation(kind, key, arrays, waiter.ticket()), here);
  waiter.wait();
}

KeyId makeKey(Store& store, const std::string& name, const Floats& value) {
  const KeyId key = store.define(name, DType::float32, value.size(), 1);
  std::vector<Floats> values{value};
  run(store, OperationKind::init, key, values);
  return key;
}

void pushTimes(Store& store, KeyId key, std::vector<Floats>& arrays, int times,
               const std::shared_ptr<Ticket>& ticket) {
  std::vector<Operation> operations;
  for (int i = 0; i < times; ++i) {
    operations.push_back(operation(OperationKind::push, key, arrays, ticket));
  }
  store.submit(std::move(operations));
}

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
  void release(std::exception_ptr error = nullptr) {
    std::vector<std::function<void(std::exception_ptr)>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(done_);
    }
    for (auto& done : all) done(error);
  }

 private:
  std::mutex mutex_;
  std::vector<KeyId> keys_;
  std::vector<std::function<void(std::exception_ptr)>> done_;
  std::counting_semaphore<> arrived_{0};
};

TEST(LocalStore, AssignsTheSumOfEachPush) {
  LocalStore store(Placement::devices, 4);
  const KeyId key = makeKey(store, "a", Floats(100, 7));
  std::vector<Floats> pushed(4, Floats(100, 1));
  std::vector<Floats> pulled(4, Floats(100));
  for (const bool here : {false, true}) {
    pushed[0].assign(100, here ? 3.0f : 1.0f);
    run(store, OperationKind::push, key, pushed, here);
    run(store, OperationKind::pull, key, pulled, here);
    for (const Floats& array : pulled) EXPECT_EQ(array, Floats(100, here ? 6 : 4));
  }
}

TEST(LocalStore, SumsInDeviceOrderAtEverySize) {
  LocalStore store(Placement::host, 3);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1e6f, 1e6f);
  int name = 0;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097}, std::size_t{300'001}}) {
    std::vector<Floats> pushed(3, Floats(count));
    Floats expected(count);
    for (Floats& array : pushed) {
      for (float& x : array) x = uniform(random);
    }
    for (std::size_t i = 0; i < count; ++i) {
      expected[i] = (pushed[0][i] + pushed[1][i]) + pushed[2][i];
    }
    const KeyId key = makeKey(store, std::to_string(name++), Floats(count));
    // Both ways: a pull that rides along with its push, and one that comes after.
    std::vector<Floats> riding(2, Floats(count, -1));
    std::vector<Floats> later(1, Floats(count, -1));
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> both;
    both.push_back(operation(OperationKind::push, key, pushed, ticket));
    both.push_back(operation(OperationKind::pull, key, riding, ticket));
    store.submit(std::move(both));
    waiter.wait();
    run(store, OperationKind::pull, key, later);
    EXPECT_EQ(riding[0], expected) << count;
    EXPECT_EQ(riding[1], expected) << count;
    EXPECT_EQ(later[0], expected) << count;
  }
}

TEST(LocalStore, RunsMoreUrgentKeysFirstAndEachKeyInOrder) {
  LocalStore store(Placement::devices, 1);
  const auto gate = std::make_shared<HeldUpdater>();
  std::vector<KeyId> keys;
  for (int i = 0; i < 4; ++i) keys.push_back(makeKey(store, std::to_string(i), Floats(8)));
  std::vector<Floats> one(1, Floats(8, 1));
  std::vector<Floats> outs(4, Floats(8));
  // A fence holds everything back until it is told to go on, so that all are queued before the
  // first begins.
  store.setUpdater(gate);
  Waiter held;
  submitOne(store, operation(OperationKind::push, keys[0], one, held.ticket()));
  gate->awaitCall();
  store.setUpdater(nullptr);
  Waiter fence;
  store.barrier(fence.ticket());
  std::vector<int> ended;
  std::mutex mutex;
  std::latch left(8);
  const auto note = [&](int value) {
    return std::make_shared<Ticket>([&, value](std::exception_ptr) {
      const std::lock_guard lock(mutex);
      ended.push_back(value);
      left.count_down();
    });
  };
  std::vector<std::vector<Floats>> targets(4, std::vector<Floats>(1, Floats(8)));
  std::vector<Operation> operations;
  const std::int32_t priorities[] = {-5, 0, 10, 3};
  for (int i = 0; i < 4; ++i) {
    operations.push_back(operation(OperationKind::push, keys[i], one, note(i), priorities[i]));
    operations.push_back(
        operation(OperationKind::pull, keys[i], targets[i], note(10 + i), priorities[i]));
  }
  store.submit(std::move(operations));
  gate->release();
  held.wait();
  left.wait();
  EXPECT_EQ(ended, (std::vector<int>{2, 12, 3, 13, 1, 11, 0, 10}));
}

TEST(LocalStore, AnUrgentPullTakesItsPushAlong) {
  LocalStore store(Placement::devices, 1);
  const auto gate = std::make_shared<HeldUpdater>();
  const KeyId first = makeKey(store, "first", Floats(8));
  const KeyId second = makeKey(store, "second", Floats(8));
  std::vector<Floats> one(1, Floats(8, 1));
  store.setUpdater(gate);
  Waiter held;
  submitOne(store, operation(OperationKind::push, first, one, held.ticket()));
  gate->awaitCall();
  store.setUpdater(nullptr);
  Waiter fence;
  store.barrier(fence.ticket());
  std::vector<int> ended;
  std::latch left(3);
  const auto note = [&](int value) {
    return std::make_shared<Ticket>([&, value](std::exception_ptr) {
      ended.push_back(value);
      left.count_down();
    });
  };
  std::vector<Floats> out(1, Floats(8));
  std::vector<Operation> operations;
  operations.push_back(operation(OperationKind::push, first, one, note(1), 5));
  operations.push_back(operation(OperationKind::push, second, one, note(2), 0));
  operations.push_back(operation(OperationKind::pull, second, out, note(3), 9));
  store.submit(std::move(operations));
  gate->release();
  held.wait();
  left.wait();
  EXPECT_EQ(ended, (std::vector<int>{2, 3, 1}));
}

TEST(LocalStore, OtherKeysGoOnWhileAnUpdaterHoldsOne) {
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
  gate->release(std::make_exception_ptr(Error(ErrorCode::invalidArgument, "no")));
  EXPECT_THROW(held.wait(), Error);
  // The failure was that push's alone.
  run(store, OperationKind::pull, slow, out);
  EXPECT_EQ(out[0], Floats(4, 0));
}

TEST(LocalStore, ManyKeysFromManyRoundsKeepTheirOrder) {
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

TEST(LocalStore, ABarrierWaitsForWhatIsHeld) {
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

TEST(LocalStore, AFenceSeesAllBeforeAndNothingAfter) {
  LocalStore store(Placement::devices, 1);
  const KeyId key = makeKey(store, "a", Floats(200'000));
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers = {{"momentum", 0.9}, {"learningRate", 0.1}};
  store.setOptimizer(Optimizer::create(spec));
  std::vector<Floats> one(1, Floats(200'000, 1));
  std::vector<Floats> out(1, Floats(200'000));
  std::vector<Floats> expected(1, Floats(200'000));
  const std::string file = testing::TempDir() + "gradlink-store-" + std::to_string(getpid());
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
  std::remove(file.c_str());
}

TEST(LocalStore, StopDropsWhatIsQueued) {
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

TEST(LocalStore, RefusesWhatDoesNotFit) {
  LocalStore store(Placement::host, 1);
  std::vector<Floats> one(1, Floats(4, 1));
  EXPECT_THROW(store.define("a", DType::float32, 4, 3), Error);
  const KeyId key = makeKey(store, "a", Floats(4));
  EXPECT_THROW(store.define("a", DType::float32, 4, 1), Error);
  EXPECT_THROW(store.setCompression(GradientCompression(CompressionType::twoBit, 0.5)), Error);
  const auto ignored = std::make_shared<Ticket>([](std::exception_ptr) {});
  EXPECT_THROW(submitOne(store, operation(OperationKind::push, key + 1, one, ignored)), Error);
  std::vector<Floats> none;
  EXPECT_THROW(submitOne(store, operation(OperationKind::push, key, none, ignored)), Error);
}

TEST(LocalStore, ReadsRowsInAnyOrder) {
  LocalStore store(Placement::host, 1);
  const KeyId key = store.define("a", DType::float32, 6, 2);
  std::vector<Floats> value{{1, 2, 3, 4, 5, 6}};
  run(store, OperationKind::init, key, value);
  Floats out(6, 9);
  Waiter waiter;
  Operation rows;
  rows.kind = OperationKind::rowSparsePull;
  rows.key = key;
  rows.out = {out.data()};
  rows.rows = {2, 0, 2};
  rows.ticket = waiter.ticket();
  submitOne(store, std::move(rows));
  waiter.wait();
  EXPECT_EQ(out, (Floats{1, 2, 0, 0, 5, 6}));
}

}  // namespace
}  // namespace gradlink
