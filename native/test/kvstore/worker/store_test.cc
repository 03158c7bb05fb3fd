// What stores with servers do beside what every store does (stores_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

TEST(DistStore, AsynchronousPushesUpdateOnTheirOwn) {
  DistJob job;
  job.workers = 3;
  job.servers = 2;
  job.asynchronous = true;
  expectNone(runDist(job, [](Store& store, int rank) {
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
  expectNone(runDist({}, [](Store& store, int) {
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
  expectNone(runDist(job, [](Store& store, int) {
    const KeyId big = makeKey(store, "big", Floats(1000));
    makeKey(store, "a", Floats(100));
    makeKey(store, "b", Floats(100));
    const auto places = store.placement();
    ASSERT_EQ(places.size(), 4u);
    EXPECT_EQ(places[0].key, "big");
    EXPECT_EQ(places[0].count + places[1].count, 1000u);
    EXPECT_NE(places[2].server, places[3].server);
    const auto sentBefore = store.report().bytesSent;
    const auto receivedBefore = store.report().bytesReceived;
    std::vector<Floats> values{Floats(1000)};
    pushPull(store, big, values, values);
    for (std::size_t server = 0; server < 2; ++server) {
      const std::size_t payload = 4 * places[server].count;
      EXPECT_GE(store.report().bytesSent[server] - sentBefore[server], payload);
      EXPECT_LT(store.report().bytesSent[server] - sentBefore[server], payload + 200);
      EXPECT_GE(store.report().bytesReceived[server] - receivedBefore[server], payload);
    }
    EXPECT_GT(store.report().copy, 0);
    auto reports = std::make_shared<std::vector<std::string>>();
    Waiter waiter;
    store.serverReports(reports, waiter.ticket());
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
  expectNone(runDist(job, [](Store& store, int rank) {
    Waiter waiter;
    store.command("sendCommandToServers", rank == 0 ? "profile" : "", waiter.ticket());
    waiter.wait();
  }));
  EXPECT_EQ(heard.count("0:profile"), 3u);
  EXPECT_EQ(heard.count("1:"), 3u);
}

TEST(DistStore, RoundsDoNotWaitForAWorkerThatLeft) {
  DistJob job;
  job.workers = 3;
  job.servers = 2;
  expectNone(runDist(job, [](Store& store, int rank) {
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
  expectNone(runDist(job, [](Store& store, int) {
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
