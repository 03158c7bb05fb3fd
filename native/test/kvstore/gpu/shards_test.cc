// Keys that are cut over the GPUs of a store: what goes where, and what NCCL is asked for.
#include "kvstore/gpu/shards.h"

#include "core/collective.h"
#include "kvstore/staged/gpu_dist_store.h"
#include "test/kvstore/gpu/support.h"
#include "test/nccl/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

/// Shorter than that, and a part of a key has no room for a cache line on each of four GPUs.
constexpr std::size_t kLong = 8 * 64;

std::shared_ptr<Optimizer> adam() { return optimizerOf("adam"); }

/// Calls of the library of this process, where it is the stand-in.
class NcclCalls {
 public:
  bool known() const { return soFar(-1).has_value(); }
  std::size_t groups() const { return since(-1); }
  /// In the order of the library's functions: all-reduce, reduce, broadcast, all-gather,
  /// reduce-scatter.
  std::vector<std::size_t> collectives() const {
    std::vector<std::size_t> counts;
    for (int kind = 0; kind < kKinds; ++kind) counts.push_back(since(kind));
    return counts;
  }

 private:
  static constexpr int kKinds = 5;
  static std::optional<std::size_t> soFar(int kind) {
    return countOf("gradlinkFakeNcclCalls", kind);
  }
  std::size_t since(int kind) const {
    return *soFar(kind) - before_[static_cast<std::size_t>(kind + 1)];
  }

  const std::vector<std::size_t> before_ = [] {
    std::vector<std::size_t> counts;
    for (int kind = -1; kind < kKinds; ++kind) counts.push_back(soFar(kind).value_or(0));
    return counts;
  }();
};

using Counts = std::vector<std::size_t>;

class GpuShards : public testing::Test {
 protected:
  std::unique_ptr<Store> open(std::optional<bool> sharded = true) const {
    return makeGpuStore({.gpus = gpus,
                         .merge = GpuMerge::nccl,
                         .shardOptimizer = sharded,
                         .leastShardBytes = 256,
                         .fuseBelowBytes = 256});
  }
  /// Pushes and pulls all keys at once.
  void step(Store& store, const std::vector<KeyId>& keys, std::size_t count) {
    std::mt19937 random(5);
    std::vector<GpuArrays> arrays;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::vector<Floats> values;
      for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        values.push_back(wholeFloats(random, count));
      }
      arrays.emplace_back(gpus, values);
    }
    pushPullAll(store, keys, arrays);
  }
  /// Bytes of each GPU's memory that `body` takes.
  std::vector<std::size_t> takenBy(const std::function<void()>& body) const {
    const auto freeOn = [](int gpu) { return freeBytes(cuda::Device::get(gpu)); };
    std::vector<std::size_t> taken;
    for (const int gpu : gpus) taken.push_back(freeOn(gpu));
    body();
    for (std::size_t i = 0; i < gpus.size(); ++i) taken[i] -= freeOn(gpus[i]);
    return taken;
  }
  /// Taken beside values and states at most: what rounds compute with, and whole pages.
  static constexpr std::size_t kBeside = 12 << 20;
  const std::vector<int> gpus = gpusOf(GpuMerge::nccl);
};

TEST(GpuKeyCuts, EveryElementIsInOnePart) {
  for (const std::size_t count : {64, 127, 128, 129, 1000, 4099}) {
    for (const std::size_t places : {1, 2, 3, 4}) {
      GpuKey key;
      key.dtype = DType::float32;
      key.count = count;
      addParts(key, places, 1);
      if (places == 1 || count < 64 * places) {
        EXPECT_TRUE(key.parts.empty());
        continue;
      }
      std::size_t next = 0;
      for (const auto& part : key.parts) {
        EXPECT_EQ(part->first, next);
        EXPECT_EQ(part->first % 64, 0U);
        next += part->count;
        if (part->part < places) {
          EXPECT_EQ(part->count, key.parts.front()->count);
        }
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(key.parts.size(), places + 1);
    }
  }
}

TEST(GpuKeyCuts, ShortKeysStayWhole) {
  GpuKey key;
  key.dtype = DType::float16;
  key.count = 1024;
  addParts(key, 4, 513);
  EXPECT_TRUE(key.parts.empty());
  addParts(key, 4, 512);
  EXPECT_EQ(key.parts.size(), 4U);
}

TEST_F(GpuShards, AreAReduceScatterAndAnAllGather) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  const auto store = open();
  const std::size_t count = gpus.size() * kLong;
  const KeyId key = defineWith(*store, "w", Floats(count));
  store->setOptimizer(adam());
  const NcclCalls calls;
  if (!calls.known()) GTEST_SKIP() << "only the stand-in counts its calls";
  step(*store, {key}, count);
  EXPECT_EQ(calls.collectives(), (Counts{0, 0, 0, 1, 1}));
  EXPECT_EQ(calls.groups(), 2U);
  // Without an optimizer nothing is between the two.
  store->setOptimizer(nullptr);
  const NcclCalls assigning;
  step(*store, {key}, count);
  EXPECT_EQ(assigning.collectives(), (Counts{1, 0, 0, 0, 0}));
}

// Whatever the time between push and pull, the links carry what an all-reduce takes.
TEST_F(GpuShards, WithoutShardsAPushIsAnAllReduceAndAPullMovesNothing) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  // Packed with another, and alone.
  for (const std::size_t count : {std::size_t{10}, gpus.size() * kLong}) {
    const auto store = open(false);
    const KeyId key = defineWith(*store, "w", Floats(count));
    const KeyId other = defineWith(*store, "v", Floats(count));
    const auto expectPulled = [&](KeyId which, float value, const Counts& counts) {
      const GpuArrays outs(gpus, Floats(count, -1));
      const NcclCalls calls;
      pull(*store, which, outs);
      for (const Floats& got : outs.read()) EXPECT_EQ(got, Floats(count, value));
      if (calls.known()) {
        EXPECT_EQ(calls.collectives(), counts);
      }
    };
    const GpuArrays ones(gpus, Floats(count, 1));
    const float sum = static_cast<float>(gpus.size());
    const NcclCalls calls;
    runAll(
        *store, [&](const auto& ticket) { return pushOf(key, ones, ticket); },
        [&](const auto& ticket) { return pushOf(other, ones, ticket); });
    if (calls.known()) {
      const std::size_t reductions = count == 10 ? 1 : 2;
      EXPECT_EQ(calls.collectives(), (Counts{reductions, 0, 0, 0, 0}));
    }
    expectPulled(key, sum, {0, 0, 0, 0, 0});
    expectPulled(other, sum, {0, 0, 0, 0, 0});
    // The owner has a newer value than the others.
    store->setOptimizer(adam());
    push(*store, key, ones);
    const GpuArrays outs(gpus, Floats(count));
    pull(*store, key, outs);
    const float stepped = outs.read().front().front();
    EXPECT_LT(stepped, sum);
    expectPulled(key, stepped, {0, 0, 1, 0, 0});
    store->setOptimizer(nullptr);
    push(*store, key, ones);
    expectPulled(key, sum, {0, 0, 0, 0, 0});
  }
}

TEST_F(GpuShards, WithoutShardsAndRoomForCopiesAPushIsAReduction) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  const auto store = open(false);
  EXPECT_TRUE(cuda::PeersInUse::any());
  constexpr std::size_t kCount = std::size_t{1} << 20;
  const KeyId key = defineWith(*store, "w", Floats(kCount));
  const GpuArrays arrays(gpus, Floats(kCount, 1));
  cuda::Device& full = cuda::Device::get(gpus[1]);
  const cuda::DeviceMemory rest(full, freeBytes(full) - kCount);
  const NcclCalls calls;
  push(*store, key, arrays);
  pull(*store, key, arrays);
  for (const Floats& got : arrays.read()) {
    EXPECT_EQ(got, Floats(kCount, static_cast<float>(gpus.size())));
  }
  if (calls.known()) {
    EXPECT_EQ(calls.collectives(), (Counts{0, 1, 1, 0, 0}));
  }
}

TEST_F(GpuShards, WhatIsLeftOverIsAKeyMore) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  const auto store = open();
  const std::size_t count = gpus.size() * kLong + 65;
  const KeyId key = defineWith(*store, "w", Floats(count));
  store->setOptimizer(adam());
  const NcclCalls calls;
  if (!calls.known()) GTEST_SKIP() << "only the stand-in counts its calls";
  step(*store, {key}, count);
  EXPECT_EQ(calls.collectives(), (Counts{0, 1, 1, 1, 1}));
}

TEST_F(GpuShards, OfManyKeysTravelInTwoGroups) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  constexpr std::size_t kKeys = 50;
  // Unless it is said otherwise, keys are cut where that moves less.
  for (const std::optional<bool> sharded : {std::optional(false), std::optional(true), {}}) {
    const auto store = open(sharded);
    const std::size_t count = gpus.size() * kLong;
    std::vector<KeyId> keys;
    for (std::size_t i = 0; i < kKeys; ++i) {
      keys.push_back(defineWith(*store, "k" + std::to_string(i), Floats(count)));
    }
    store->setOptimizer(adam());
    const NcclCalls calls;
    if (!calls.known()) GTEST_SKIP() << "only the stand-in counts its calls";
    step(*store, keys, count);
    // One before the optimizers, one after them.
    EXPECT_EQ(calls.groups(), 2U);
    EXPECT_EQ(calls.collectives(),
              sharded != false ? (Counts{0, 0, 0, kKeys, kKeys}) : (Counts{0, kKeys, kKeys, 0, 0}));
    if (sharded == true) continue;
    // Without an optimizer they are whole: the push leaves its sum on all GPUs.
    store->setOptimizer(nullptr);
    const GpuArrays ones(gpus, Floats(count, 1));
    const NcclCalls assigning;
    push(*store, keys[0], ones);
    pull(*store, keys[0], ones);
    EXPECT_EQ(assigning.collectives(), (Counts{1, 0, 0, 0, 0}));
  }
}

TEST_F(GpuShards, TakeTheirShareOfEachGpusMemory) {
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has all of a key";
  constexpr std::size_t kBytes = 16 << 20;
  for (const bool sharded : {false, true}) {
    const auto store =
        makeGpuStore({.gpus = gpus, .merge = GpuMerge::peer, .shardOptimizer = sharded});
    store->setOptimizer(adam());
    const GpuArrays gradients(gpus, Floats(kBytes / sizeof(float), 1));
    push(*store, defineWith(*store, "first", Floats(8)), GpuArrays(gpus, Floats(8)));
    const std::vector<std::size_t> taken = takenBy(
        [&] { push(*store, defineWith(*store, "w", Floats(kBytes / sizeof(float))), gradients); });
    const std::size_t most = *std::max_element(taken.begin(), taken.end());
    // The value, and what Adam keeps: two arrays.
    if (sharded) {
      EXPECT_LE(most, 3 * kBytes / gpus.size() + kBeside);
    } else {
      EXPECT_GE(most, 3 * kBytes);
    }
  }
}

TEST_F(GpuShards, OfWorkersWithoutServersAreSteppedByTheirGpus) {
  constexpr std::size_t kBytes = 32 << 20;
  for (const bool sharded : {false, true}) {
    expectNone(onRanksTaken(2, [&](std::unique_ptr<Communicator> comm, int rank) {
      const auto store =
          makeGpuAllreduceStore(std::move(comm), {.shardOptimizer = sharded}, {.gpus = gpus});
      store->setOptimizer(adam());
      push(*store, defineWith(*store, "first", Floats(8)), GpuArrays({gpus[0]}, {Floats(8)}));
      const GpuArrays gradient({gpus[0]}, {Floats(kBytes / sizeof(float), 1)});
      meet(*store);
      const std::vector<std::size_t> taken = takenBy([&] {
        meet(*store);
        push(*store, defineWith(*store, "w", Floats(kBytes / sizeof(float))), gradient);
        meet(*store);
      });
      meet(*store);
      // Of both workers: half of the value each, and what Adam keeps for it.
      for (const std::size_t bytes : taken) {
        if (sharded) {
          EXPECT_GE(bytes, 3 * kBytes / gpus.size()) << rank;
        } else {
          EXPECT_LE(bytes, kBeside) << rank;
        }
      }
      store->stop();
    }));
  }
}

TEST(GpuShardsOnHost, AreRefused) {
  const std::string text = cuda::messageOf(ErrorCode::unsupported, [] {
    makeGpuStore({.gpus = {0}, .merge = GpuMerge::host, .shardOptimizer = true});
  });
  EXPECT_EQ(lacking(text, {"shardOptimizer", "the host"}), "") << text;
}

}  // namespace
}  // namespace gradlink::test
