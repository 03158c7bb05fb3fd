// A store whose rounds are CUDA graphs gives the bits of one that queues everything anew, with
// fewer calls of the driver.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/base/compression.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kGraphKeys = 5;
constexpr std::size_t kGraphCounts[kGraphKeys] = {1000, 1, 70'000, 333, 4096};

/// Two GPUs where there are, as often as the name says.
std::vector<int> graphGpus(int devices) {
  const int present = cuda::Device::count();
  std::vector<int> gpus;
  gpus.reserve(static_cast<std::size_t>(devices));
  for (int i = 0; i < devices; ++i) gpus.push_back(present > 1 ? i % 2 : 0);
  return gpus;
}

bool reachable(const std::vector<int>& gpus) {
  for (const int gpu : gpus) {
    if (!cuda::Device::get(gpus[0]).canReach(cuda::Device::get(gpu))) return false;
    if (!cuda::Device::get(gpu).canReach(cuda::Device::get(gpus[0]))) return false;
  }
  return true;
}

std::unique_ptr<Store> openStore(const std::vector<int>& gpus, bool graph) {
  GpuStoreOptions options;
  options.gpus = gpus;
  options.merge = GpuMerge::peer;
  options.graph = graph;
  return makeGpuStore(options);
}

std::shared_ptr<Optimizer> graphOptimizer(const std::string& name) {
  if (name == "none") return nullptr;
  OptimizerSpec spec;
  spec.name = name;
  return Optimizer::create(spec);
}

/// A store with keys, and arrays that are pushed and pulled.
struct Loop {
  Loop(const std::vector<int>& gpus, bool graph, const std::string& optimizer)
      : store(openStore(gpus, graph)) {
    for (std::size_t i = 0; i < kGraphKeys; ++i) {
      keys.push_back(defineWith(*store, std::to_string(i), Floats(kGraphCounts[i], 1)));
      grads.emplace_back(gpus, Floats(kGraphCounts[i]));
      outs.emplace_back(gpus, Floats(kGraphCounts[i]));
    }
    store->setOptimizer(graphOptimizer(optimizer));
  }
  void draw(std::mt19937& random) {
    for (std::size_t i = 0; i < kGraphKeys; ++i) {
      std::vector<Floats> values;
      for (std::size_t j = 0; j < grads[i].gpus().size(); ++j) {
        values.push_back(randomFloats(random, kGraphCounts[i]));
      }
      grads[i].write(values);
    }
  }
  /// All keys in one go, as a batch is.
  void iterate() {
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < kGraphKeys; ++i) {
      operations.push_back(pushOf(keys[i], grads[i], ticket));
      operations.push_back(pullOf(keys[i], outs[i], ticket));
    }
    store->submit(std::move(operations));
    waiter.wait();
  }
  std::vector<std::vector<Floats>> read() const {
    std::vector<std::vector<Floats>> values;
    for (const GpuArrays& out : outs) values.push_back(out.read());
    return values;
  }

  std::unique_ptr<Store> store;
  std::vector<KeyId> keys;
  std::vector<GpuArrays> grads;
  std::vector<GpuArrays> outs;
};

class GpuStoreGraphs : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, GpuStoreGraphs,
                         testing::Values("none", "sgd", "adam", "lamb", "lars"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GpuStoreGraphs, GiveTheBitsOfWhatIsQueuedAnew) {
  for (const int devices : {1, 4}) {
    const std::vector<int> gpus = graphGpus(devices);
    if (!reachable(gpus)) GTEST_SKIP() << "needs GPUs that reach one another";
    Loop graph(gpus, true, GetParam());
    Loop queued(gpus, false, GetParam());
    for (int iteration = 0; iteration < 6; ++iteration) {
      if (iteration == 3 && std::string(GetParam()) != "none") {
        // The optimizer's numbers change, the graph does not.
        for (Loop* loop : {&graph, &queued}) {
          Waiter waiter;
          loop->store->setLearningRate(0.05, waiter.ticket());
          waiter.wait();
        }
      }
      for (Loop* loop : {&graph, &queued}) {
        std::mt19937 random(static_cast<unsigned>(iteration));
        loop->draw(random);
        loop->iterate();
      }
      ASSERT_EQ(graph.read(), queued.read()) << devices << " devices, iteration " << iteration;
    }
    // Other arrays: another graph. Then the first again.
    const GpuArrays others(gpus, Floats(kGraphCounts[0], 2));
    for (Loop* loop : {&graph, &queued}) {
      push(*loop->store, loop->keys[0], others);
      loop->iterate();
    }
    EXPECT_EQ(graph.read(), queued.read());
  }
}

/// Calls of the driver that queue something, of one iteration that came before.
std::uint64_t callsOf(bool graph, const char* optimizer) {
  Loop loop(graphGpus(1), graph, optimizer);
  for (int i = 0; i < 3; ++i) loop.iterate();
  const std::uint64_t before = cuda::queuedOn(nullptr);
  loop.iterate();
  return cuda::queuedOn(nullptr) - before;
}

TEST(GpuStoreGraphCalls, AnIterationIsOneLaunch) {
  if (!cuda::onFakes()) GTEST_SKIP() << "needs the stand-ins, which count what is queued";
  // The graph, and the mark of the round's end; where nothing has changed, no list.
  EXPECT_EQ(callsOf(true, "none"), 2u);
  EXPECT_EQ(callsOf(true, "sgd"), 2u);
  // Adam's numbers change with each step: the list too.
  EXPECT_EQ(callsOf(true, "adam"), 3u);
  // List, event, wait and kernel; and the mark.
  EXPECT_EQ(callsOf(false, "sgd"), 5u);
  // Four kernels.
  EXPECT_EQ(callsOf(true, "lamb"), 3u);
  EXPECT_EQ(callsOf(false, "lamb"), 8u);
}

TEST(GpuStoreGraphRefusals, SayWhatCannotBeCaptured) {
  const auto store = openStore(graphGpus(1), true);
  const auto refused = [](const auto& body) {
    return cuda::messageOf(ErrorCode::unsupported, body);
  };
  EXPECT_NE(refused([&] {
              store->setCompression({CompressionType::twoBit, 0.5});
            }).find("compression"),
            std::string::npos);
  GpuStoreOptions options;
  options.gpus = {0};
  options.graph = true;
  options.merge = GpuMerge::nccl;
  EXPECT_NE(refused([&] { makeGpuStore(options); }).find("NCCL"), std::string::npos);
  options.merge = GpuMerge::host;
  EXPECT_NE(refused([&] { makeGpuStore(options); }).find("device"), std::string::npos);
  if (cuda::Device::count() < 2) return;
  options.gpus = {0, 1};
  options.merge = GpuMerge::automatic;
  options.peer = false;
  EXPECT_EQ(lacking(refused([&] { makeGpuStore(options); }), {"gpu:0", "gpu:1"}), "");
}

}  // namespace
}  // namespace gradlink::test
