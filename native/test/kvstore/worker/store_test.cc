// Workers and servers together: rounds, order, keys cut and whole, everything a store can be asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

Floats ramp(std::size_t count, float from) {
  Floats values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

using Shape = std::tuple<int, int>;  // workers, servers

class DistStores : public testing::TestWithParam<Shape> {
 protected:
  DistJob job() const {
    DistJob job;
    std::tie(job.workers, job.servers) = GetParam();
    return job;
  }
};

TEST_P(DistStores, PushAssignsTheSumOfAllWorkersAndDevices) {
  DistJob shape = job();
  shape.devices = 2;
  shape.bigArrayBound = 500;
  expectNone(runDist(shape, [&](DistStore& store, int rank) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{499}, std::size_t{150'001}}) {
      const KeyId key = makeKey(store, "k" + std::to_string(count), ramp(count, 5));
      std::vector<Floats> out{Floats(count), Floats(count)};
      run(store, OperationKind::pull, key, out);
      EXPECT_EQ(out[0], ramp(count, 5)) << "worker 0's value counts";
      for (int round = 1; round <= 3; ++round) {
        std::vector<Floats> in{Floats(count, static_cast<float>(rank + 1)),
                               Floats(count, static_cast<float>(10 * round))};
        run(store, OperationKind::push, key, in);
        in = {Floats(count, -1), Floats(count, -1)};  // what was pushed may be overwritten
        run(store, OperationKind::pull, key, out);
        const int workers = shape.workers;
        const auto sum = static_cast<float>(workers * (workers + 1) / 2 + workers * 10 * round);
        EXPECT_EQ(out[0], Floats(count, sum));
        EXPECT_EQ(out[1], Floats(count, sum));
      }
      std::vector<Floats> both{Floats(count, 1), Floats(count, 2)};
      pushPull(store, key, both, both);
      EXPECT_EQ(both[0], Floats(count, static_cast<float>(3 * shape.workers)));
      EXPECT_EQ(both[1], both[0]);
    }
  }));
}

TEST_P(DistStores, ManyKeysAtOnceInDifferentOrders) {
  DistJob shape = job();
  shape.mostStagedBytes = 1 << 20;  // far less than what is pushed
  constexpr std::size_t kKeys = 40;
  constexpr std::size_t kCount = 50'000;
  expectNone(runDist(shape, [&](DistStore& store, int rank) {
    std::vector<KeyId> keys;
    for (std::size_t k = 0; k < kKeys; ++k) {
      keys.push_back(makeKey(store, std::to_string(k), Floats(kCount)));
    }
    std::vector<std::vector<Floats>> in;
    std::vector<std::vector<Floats>> out;
    for (std::size_t k = 0; k < kKeys; ++k) {
      in.push_back({Floats(kCount, static_cast<float>(k + 1))});
      out.push_back({Floats(kCount)});
    }
    for (int round = 0; round < 3; ++round) {
      Waiter waiter;
      const auto ticket = waiter.ticket();
      std::vector<Operation> operations;
      for (std::size_t i = 0; i < kKeys; ++i) {
        // Odd workers begin at the other end: each fills its window with keys that the others
        // would push last.
        const std::size_t k = rank % 2 == 0 ? i : kKeys - 1 - i;
        operations.push_back(operation(OperationKind::push, keys[k], in[k], ticket));
      }
      for (std::size_t k = 0; k < kKeys; ++k) {
        operations.push_back(operation(OperationKind::pull, keys[k], out[k], ticket));
      }
      store.submit(std::move(operations));
      waiter.wait();
      for (std::size_t k = 0; k < kKeys; ++k) {
        ASSERT_EQ(out[k][0], Floats(kCount, static_cast<float>(shape.workers * (k + 1)))) << k;
        out[k][0].assign(kCount, 0);
      }
    }
  }));
}

TEST_P(DistStores, ASecondPushOfAKeyIsAnotherRound) {
  expectNone(runDist(job(), [&](DistStore& store, int rank) {
    const auto [workers, servers] = GetParam();
    const KeyId key = makeKey(store, "key", Floats(1000));
    std::vector<Floats> first{Floats(1000, 1)};
    std::vector<Floats> second{Floats(1000, 100)};
    std::vector<Floats> out{Floats(1000)};
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> operations;
    operations.push_back(operation(OperationKind::push, key, first, ticket));
    operations.push_back(operation(OperationKind::push, key, second, ticket));
    if (rank == 0) operations.push_back(operation(OperationKind::pull, key, out, ticket));
    store.submit(std::move(operations));
    waiter.wait();
    if (rank == 0) {
      EXPECT_EQ(out[0], Floats(1000, static_cast<float>(100 * workers)));
    }
  }));
}

TEST_P(DistStores, OptimizersRunOnServersOnceARound) {
  DistJob shape = job();
  shape.bigArrayBound = 10'000;
  expectNone(runDist(shape, [&](DistStore& store, int) {
    const KeyId small = makeKey(store, "small", Floats(100, 1));
    const KeyId big = makeKey(store, "big", Floats(100'000, 1));
    store.setOptimizer(Optimizer::create(specOf("sgd", {{"learningRate", 0.5}})));
    std::vector<Floats> out{Floats(100)};
    std::vector<Floats> bigOut{Floats(100'000)};
    float expected = 1;
    for (int round = 0; round < 4; ++round) {
      if (round == 2) {
        Waiter waiter;
        store.setLearningRate(0.25, waiter.ticket());
        waiter.wait();
      }
      std::vector<Floats> in{Floats(100, 2)};
      std::vector<Floats> bigIn{Floats(100'000, 2)};
      pushPull(store, small, in, out);
      pushPull(store, big, bigIn, bigOut);
      expected -= (round < 2 ? 0.5f : 0.25f) * 2 * static_cast<float>(shape.workers);
      EXPECT_EQ(out[0], Floats(100, expected));
      EXPECT_EQ(bigOut[0], Floats(100'000, expected));
    }
    store.setOptimizer(nullptr);
    std::vector<Floats> in{Floats(100, 3)};
    pushPull(store, small, in, out);
    EXPECT_EQ(out[0], Floats(100, static_cast<float>(3 * shape.workers))) << "assigns again";
  }));
}

TEST_P(DistStores, RowsThatAreNotAskedForReadAsZero) {
  DistJob shape = job();
  shape.bigArrayBound = 1000;
  constexpr std::size_t kRow = 30'000;  // rows that lie in two pieces and on two servers
  constexpr std::size_t kRows = 7;
  expectNone(runDist(shape, [&](DistStore& store, int) {
    const KeyId key = store.define("rows", DType::float32, kRow * kRows, kRow);
    std::vector<Floats> value{ramp(kRow * kRows, 1)};
    run(store, OperationKind::init, key, value);
    std::vector<Floats> out{Floats(kRow * kRows, -1)};
    Waiter waiter;
    Operation pull = operation(OperationKind::pull, key, out, waiter.ticket());
    pull.kind = OperationKind::rowSparsePull;
    pull.rows = {5, 2, 5};
    submitOne(store, std::move(pull));
    waiter.wait();
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t i = row * kRow; i < (row + 1) * kRow; ++i) {
        ASSERT_EQ(out[0][i], row == 2 || row == 5 ? value[0][i] : 0) << row;
      }
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, DistStores,
                         testing::Values(Shape{1, 1}, Shape{2, 2}, Shape{3, 1}, Shape{1, 4},
                                         Shape{4, 3}),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "Workers" +
                                  std::to_string(std::get<1>(info.param)) + "Servers";
                         });

TEST(DistStore, AsynchronousPushesUpdateOnTheirOwn) {
  DistJob job;
  job.workers = 3;
  job.servers = 2;
  job.asynchronous = true;
  expectNone(runDist(job, [](DistStore& store, int rank) {
    const KeyId key = makeKey(store, "key", Floats(1000));
    store.setOptimizer(Optimizer::create(specOf("test")));  // weight += gradient
    meet(store);
    if (rank != 1) {
      std::vector<Floats> in{Floats(1000, 1)};
      Waiter waiter;
      pushTimes(store, key, in, 10 * (rank + 1), waiter.ticket());
      waiter.wait();
      std::vector<Floats> own{Floats(1000)};
      run(store, OperationKind::pull, key, own);
      EXPECT_GE(own[0][0], static_cast<float>(10 * (rank + 1))) << "its own pushes at least";
    }
    meet(store);
    std::vector<Floats> out{Floats(1000)};
    run(store, OperationKind::pull, key, out);
    EXPECT_EQ(out[0], Floats(1000, 40));
  }));
}

TEST(DistStore, KeysWithoutElementsNeedNoServer) {
  expectNone(runDist({}, [](DistStore& store, int) {
    const KeyId key = makeKey(store, "empty", {});
    std::vector<Floats> none{{}};
    pushPull(store, key, none, none);
    EXPECT_TRUE(store.placement().empty());
  }));
}

TEST(DistStore, PlacementAndBytesAreReported) {
  DistJob job;
  job.servers = 2;
  job.bigArrayBound = 1000;
  expectNone(runDist(job, [](DistStore& store, int) {
    const KeyId big = makeKey(store, "big", Floats(1000));
    makeKey(store, "a", Floats(100));
    makeKey(store, "b", Floats(100));
    const auto places = store.placement();
    ASSERT_EQ(places.size(), 4u);
    EXPECT_EQ(places[0].key, "big");
    EXPECT_EQ(places[0].count + places[1].count, 1000u);
    EXPECT_NE(places[2].server, places[3].server);
    const auto sentBefore = store.bytesSent();
    const auto receivedBefore = store.bytesReceived();
    std::vector<Floats> values{Floats(1000)};
    pushPull(store, big, values, values);
    for (std::size_t server = 0; server < 2; ++server) {
      const std::size_t payload = 4 * places[server].count;
      EXPECT_GE(store.bytesSent()[server] - sentBefore[server], payload);
      EXPECT_LT(store.bytesSent()[server] - sentBefore[server], payload + 200);
      EXPECT_GE(store.bytesReceived()[server] - receivedBefore[server], payload);
    }
    EXPECT_GT(store.times().copy, 0);
    auto reports = std::make_shared<std::vector<std::string>>();
    Waiter waiter;
    store.reports(reports, waiter.ticket());
    waiter.wait();
    ASSERT_EQ(reports->size(), 2u);
    for (const std::string& report : *reports) EXPECT_EQ(report.front(), '{') << report;
  }));
}

TEST(DistStore, CommandsReachEveryServer) {
  DistJob job;
  job.workers = 2;
  job.servers = 3;
  std::mutex mutex;
  std::multiset<std::string> heard;
  job.onCommand = [&](int worker, const std::string& text) {
    const std::lock_guard lock(mutex);
    heard.insert(std::to_string(worker) + ":" + text);
  };
  expectNone(runDist(job, [](DistStore& store, int rank) {
    Waiter waiter;
    store.command(rank == 0 ? "profile" : "", waiter.ticket());
    waiter.wait();
  }));
  EXPECT_EQ(heard.count("0:profile"), 3u);
  EXPECT_EQ(heard.count("1:"), 3u);
}

TEST(DistStore, RoundsDoNotWaitForAWorkerThatLeft) {
  DistJob job;
  job.workers = 3;
  job.servers = 2;
  expectNone(runDist(job, [](DistStore& store, int rank) {
    const KeyId key = makeKey(store, "key", Floats(1000));
    std::vector<Floats> in{Floats(1000, 1)};
    std::vector<Floats> out{Floats(1000)};
    pushPull(store, key, in, out);
    EXPECT_EQ(out[0], Floats(1000, 3));
    if (rank == 2) {
      Waiter waiter;
      store.leave(waiter.ticket());
      waiter.wait();
      EXPECT_THROW(run(store, OperationKind::push, key, in), Error);
      run(store, OperationKind::pull, key, out);  // it may still pull
    } else {
      for (int round = 0; round < 5; ++round) pushPull(store, key, in, out);
      EXPECT_EQ(out[0], Floats(1000, 2));
    }
  }));
}

TEST(DistStore, MisuseIsToldAtOnce) {
  DistJob job;
  job.servers = 2;
  job.bigArrayBound = 1000;
  expectNone(runDist(job, [](DistStore& store, int) {
    const KeyId key = makeKey(store, "key", Floats(1000));
    EXPECT_THROW(store.define("key", DType::float32, 1, 1), Error);
    EXPECT_THROW(store.setUpdater(nullptr), Error);
    EXPECT_THROW(store.setOptimizer(Optimizer::create(specOf("lamb"))), Error)
        << "the key is cut, and lamb needs its norm";
    std::vector<Floats> none;
    EXPECT_THROW(run(store, OperationKind::push, key, none), Error);
    std::vector<Floats> some{Floats(1000)};
    EXPECT_THROW(run(store, OperationKind::push, key + 1, some), Error);
    pushPull(store, key, some, some);  // and it goes on
  }));
}

}  // namespace
}  // namespace gradlink::test
