// What stores with servers do beside what every store does (conformance).
#include <numeric>
#include <set>

#include "kvstore/protocol/protocol.h"
#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

TEST(DistStore, AsynchronousPushesUpdateOnTheirOwn) {
  DistJob job{.workers = 3, .servers = 2, .asynchronous = true};
  expectNone(runDist(job, [](Store& store, int rank) {
    const KeyId key = makeKey(store, "key", Floats(1000));
    store.setOptimizer(Optimizer::create(specOf("test")));  // weight += gradient
    meet(store);
    if (rank != 1) {
      std::vector<Floats> in{Floats(1000, 1)};
      waitFor([&](auto ticket) { pushTimes(store, key, in, 10 * (rank + 1), ticket); });
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

TEST(DistStore, PlacementAndBytesAreReported) {
  DistJob job{.servers = 2, .bigArrayBound = 1000};
  expectNone(runDist(job, [](Store& store, int) {
    const KeyId big = makeKey(store, "big", Floats(1000));
    makeKey(store, "a", Floats(100));
    makeKey(store, "b", Floats(100));
    makeKey(store, "empty", {});  // needs no server
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
    waitFor([&](auto ticket) { store.serverReports(reports, ticket); });
    ASSERT_EQ(reports->size(), 2u);
    for (const std::string& report : *reports) EXPECT_EQ(report.front(), '{') << report;
  }));
}

TEST(DistStore, CompressedPushesTravelCompressed) {
  for (const auto& [type, bits] :
       {std::pair{"2bit", 2}, {"1bit", 1}, {"float16", 16}, {"bfloat16", 16}}) {
    DistJob job{.servers = 7, .bigArrayBound = 5000};
    expectNone(runDist(job, [&](Store& store, int) {
      constexpr std::size_t kCount = 10'003;
      store.setCompression(GradientCompression::create(type, 0.375));
      const KeyId key = makeKey(store, "key", Floats(kCount));
      const auto sent = [&] {
        const std::vector<std::uint64_t> bytes = store.report().bytesSent;
        return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
      };
      const std::uint64_t before = sent();
      std::vector<Floats> values{Floats(kCount, 1)};
      pushPull(store, key, values, values);
      const std::size_t headers = 7 * (sizeof(dist::Header) + 8);
      EXPECT_LT(sent() - before, kCount * static_cast<std::size_t>(bits) / 8 + headers) << type;
    }));
  }
}

TEST(DistStore, CommandsReachEveryServer) {
  DistJob job{.workers = 2, .servers = 3};
  std::mutex mutex;
  std::multiset<std::string> heard;
  job.onCommand = [&](int worker, const std::string& text) {
    const std::lock_guard lock(mutex);
    heard.insert(std::to_string(worker) + ":" + text);
  };
  expectNone(runDist(job, [](Store& store, int rank) {
    waitFor([&](auto ticket) {
      store.command("sendCommandToServers", rank == 0 ? "profile" : "", ticket);
    });
  }));
  EXPECT_EQ(heard.count("0:profile"), 3u);
  EXPECT_EQ(heard.count("1:"), 3u);
}

}  // namespace
}  // namespace gradlink::test
