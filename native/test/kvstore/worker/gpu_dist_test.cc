// Distributed stores whose devices are GPUs: workers and servers as threads, with the bits of
// stores whose arrays are on the host.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "kvstore/staged/gpu_dist_store.h"
#include "test/kvstore/gpu/support.h"
#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

struct Way {
  const char* name;
  bool onHost;
  GpuMerge merge = GpuMerge::peer;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

/// Two workers of three devices, and two servers.
class GpuDist : public testing::TestWithParam<Way> {
 protected:
  static constexpr int kWorkers = 2;

  GpuDist() {
    for (int i = 0; i < 3; ++i) gpus.push_back(i % cuda::Device::count());
    job.workers = kWorkers;
    job.servers = 2;
    job.bigArrayBound = 5000;
    job.devices = GetParam().onHost ? gpus.size() : 1;
  }

  void SetUp() override {
    if (GetParam().merge == GpuMerge::nccl && cuda::Device::count() < 3) {
      GTEST_SKIP() << "needs 3 GPUs";
    }
  }

  /// Runs body(store, rank) for each worker, on GPUs.
  std::vector<std::optional<Error>> run(const std::function<void(Store&, int)>& body) const {
    const std::string name = freshName();
    return onThreads(job.workers + job.servers, [&](int rank) {
      if (rank >= job.workers) return serveOf(job, name, rank);
      const auto store = makeGpuDistStore(workerOf(job, name, rank), {.gpus = gpus,
                                                                      .onHost = GetParam().onHost,
                                                                      .merge = GetParam().merge,
                                                                      .timeoutMs = 20000});
      body(*store, rank);
      store->stop();
    });
  }

  std::vector<Floats> valuesOf(int rank, int round, std::size_t count) const {
    std::vector<Floats> values;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      std::mt19937 random(static_cast<unsigned>(rank * 100 + round * 10) +
                          static_cast<unsigned>(i));
      values.push_back(wholeFloats(random, count));
    }
    return values;
  }
  Floats sumOf(int round, std::size_t count) const {
    Floats sum(count);
    for (int rank = 0; rank < kWorkers; ++rank) {
      for (const Floats& values : valuesOf(rank, round, count)) {
        for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
      }
    }
    return sum;
  }
  std::vector<Floats> everywhere(const Floats& values) const {
    return std::vector<Floats>(gpus.size(), values);
  }

  std::vector<int> gpus;
  DistJob job;
};

TEST_P(GpuDist, APushIsDoneBeforeTheOtherWorkersPush) {
  job.servers = 1;
  std::promise<void> pushed;
  std::shared_future<void> first = pushed.get_future().share();
  expectNone(run([&](Store& store, int rank) {
    constexpr std::size_t kCount = 100;
    const KeyId key = defineWith(store, "w", Floats(kCount));
    const GpuArrays in(gpus, valuesOf(rank, 0, kCount));
    GpuArrays out(gpus, Floats(kCount));
    Waiter push;
    Waiter pull;
    if (rank == 1) first.wait();
    // In one call: the pull, which waits for both workers, may not hold the push up.
    std::vector<Operation> operations;
    operations.push_back(pushOf(key, in, push.ticket()));
    operations.push_back(pullOf(key, out, pull.ticket()));
    store.submit(std::move(operations));
    push.wait();
    if (rank == 0) pushed.set_value();
    pull.wait();
    EXPECT_EQ(out.read(), everywhere(sumOf(0, kCount)));
    EXPECT_EQ(store.placement().size(), 1U);
  }));
}

TEST_P(GpuDist, CompressedPushesGiveTheBitsOfHostArrays) {
  constexpr std::size_t kCount = 9'000;
  job.bigArrayBound = 1'000'000;
  const auto valuesAt = [&](int rank, int round) {
    std::mt19937 random(static_cast<unsigned>(rank * 10 + round));
    std::vector<Floats> values;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      values.push_back(wholeFloats(random, kCount));
      // Exact in any order: NCCL has one of its own.
      for (float& x : values.back()) x /= 1024;
    }
    return values;
  };
  for (const char* type : {"2bit", "1bit", "float16", "bfloat16"}) {
    std::vector<Floats> expected(3);
    DistJob onHost = job;
    onHost.devices = gpus.size();
    expectNone(runDist(onHost, [&](Store& store, int rank) {
      store.setCompression(GradientCompression::create(type, 0.5));
      const KeyId key = makeKey(store, "w", Floats(kCount));
      for (int round = 0; round < 3; ++round) {
        std::vector<Floats> in = valuesAt(rank, round);
        std::vector<Floats> out(1, Floats(kCount));
        pushPull(store, key, in, out);
        if (rank == 0) expected[static_cast<std::size_t>(round)] = out[0];
      }
    }));
    expectNone(run([&](Store& store, int rank) {
      store.setCompression(GradientCompression::create(type, 0.5));
      const KeyId key = defineWith(store, "w", Floats(kCount));
      GpuArrays out(gpus, Floats(kCount));
      for (int round = 0; round < 3; ++round) {
        push(store, key, GpuArrays(gpus, valuesAt(rank, round)));
        pull(store, key, out);
        EXPECT_EQ(out.read(), everywhere(expected[static_cast<std::size_t>(round)])) << type;
      }
    }));
  }
}

TEST_P(GpuDist, WhatASettingFailsWithIsToldByTheNextBarrier) {
  expectNone(run([&](Store& store, int) {
    const KeyId key = defineWith(store, "cut", Floats(6000));
    store.setOptimizer(Optimizer::create(specOf("lamb", {{"learningRate", 1}})));
    try {
      meet(store);
      ADD_FAILURE() << "the barrier did not fail";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::unsupported);
    }
    meet(store);
    GpuArrays out(gpus, Floats(6000, 3));
    pull(store, key, out);
    EXPECT_EQ(out.read(), everywhere(Floats(6000)));
  }));
}

TEST_P(GpuDist, ArraysElsewhereAreRefused) {
  job.workers = 1;
  job.servers = 1;
  expectNone(run([&](Store& store, int) {
    const KeyId key = defineWith(store, "w", Floats(6));
    std::vector<Floats> elsewhere(1, Floats(6));
    Operation made = operation(OperationKind::push, key, elsewhere, Waiter().ticket());
    made.inGpus = {63};
    EXPECT_THROW(submitOne(store, std::move(made)), Error);
  }));
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuDist,
                         testing::Values(Way{"SummedOnAGpu", false}, Way{"SummedOnTheHost", true},
                                         Way{"SummedByNccl", false, GpuMerge::nccl}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradlink::test
