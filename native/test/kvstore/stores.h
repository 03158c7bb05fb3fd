// Every kind of store there is, for the suite of what all of them do (stores_test.cc): how many
// workers take part, over which servers, and whether devices are the host's or GPUs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/local/local_store.h"
#include "kvstore/staged/gpu_dist_store.h"
#include "kvstore/store_checks.h"
#include "test/kvstore/gpu/support.h"
#include "test/kvstore/worker/support.h"

namespace gradlink::test {

struct StoreMaker {
  const char* name;
  enum Way { alone, overServers, byAllReduce } way = alone;
  int workers = 1;
  int servers = 0;
  bool onGpus = false;
  StoreKind gpus = {"", GpuMerge::peer, false};
  /// byAllReduce: whether each worker steps a part of every key.
  bool sharded = false;
};
inline void PrintTo(const StoreMaker& maker, std::ostream* out) { *out << maker.name; }

inline const StoreMaker kStoreMakers[] = {
    {"Local"},
    {"OneServer", StoreMaker::overServers, 1, 1},
    {"TwoOnTwoServers", StoreMaker::overServers, 2, 2},
    {"ThreeOnOneServer", StoreMaker::overServers, 3, 1},
    {"FourOnThreeServers", StoreMaker::overServers, 4, 3},
    {"AllReduceOfOne", StoreMaker::byAllReduce, 1},
    {"AllReduceOfTwo", StoreMaker::byAllReduce, 2},
    {"AllReduceOfSeven", StoreMaker::byAllReduce, 7},
    {"AllReduceInShards", StoreMaker::byAllReduce, 3, 0, false, {}, true},
    {"GpusByPeer", StoreMaker::alone, 1, 0, true, {"", GpuMerge::peer, false}},
    {"OneGpu", StoreMaker::alone, 1, 0, true, {"", GpuMerge::automatic, true}},
    {"GpusByNccl", StoreMaker::alone, 1, 0, true, {"", GpuMerge::nccl, false}},
    {"GpusByHost", StoreMaker::alone, 1, 0, true, {"", GpuMerge::host, false}},
    {"GpusWithoutPeer", StoreMaker::alone, 1, 0, true, {"", GpuMerge::automatic, false, false}},
    {"GpusInShards", StoreMaker::alone, 1, 0, true, {"", GpuMerge::nccl, false, true, true}},
    {"GpusOnServers", StoreMaker::overServers, 2, 2, true, {"", GpuMerge::peer, false}},
    {"GpusByHostOnServers", StoreMaker::overServers, 2, 2, true, {"", GpuMerge::host, false}},
    {"GpusByNcclOnServers", StoreMaker::overServers, 2, 2, true, {"", GpuMerge::nccl, false}},
    {"GpusByAllReduce", StoreMaker::byAllReduce, 2, 0, true, {"", GpuMerge::peer, false}},
};

/// An operation on arrays of the host, one for each device, which come to GPUs and back on their
/// own.
struct Step {
  OperationKind kind;
  KeyId key;
  /// None: what is in `out`, in place.
  std::vector<Floats> in = {};
  std::vector<Floats>* out = nullptr;
  std::int32_t priority = 0;
  std::vector<std::int64_t> rows = {};
  std::vector<std::vector<std::int64_t>> inRows = {};
};

/// Steps that were submitted in one call. The arrays pushed must be as they were when it is over,
/// and are overwritten then.
class RunningSteps {
 public:
  RunningSteps(Store& store, const std::vector<int>& gpus, std::vector<Step> steps,
               bool here = false)
      : steps_(std::move(steps)) {
    std::vector<Operation> operations;
    const auto ticket = waiter_.ticket();
    for (Step& step : steps_) {
      before_.push_back(step.in);
      Operation made;
      made.kind = step.kind;
      made.key = step.key;
      made.priority = step.priority;
      made.rows = step.rows;
      made.inRows = step.inRows;
      made.ticket = ticket;
      std::vector<Floats> none;
      std::vector<Floats>& out = step.out == nullptr ? none : *step.out;
      // Rows come from the host, whatever the devices.
      const bool rowsIn = !step.inRows.empty();
      in_.emplace_back(gpus, gpus.empty() || rowsIn ? none : step.in);
      out_.emplace_back(gpus, gpus.empty() ? none : out);
      made.in = in_.back().in();
      made.out = out_.back().out();
      if (gpus.empty() || rowsIn) {
        for (const Floats& array : step.in) made.in.push_back(array.data());
      }
      if (gpus.empty()) {
        for (Floats& array : out) made.out.push_back(array.data());
      }
      if (isPush(step.kind) && made.in.empty()) made.in.assign(made.out.begin(), made.out.end());
      operations.push_back(std::move(made));
    }
    store.submit(std::move(operations), here);
  }
  void wait() {
    waiter_.wait();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      const std::vector<Floats> in = in_[i].read();
      EXPECT_EQ(in.empty() ? step.in : in, before_[i]);
      for (Floats& array : step.in) std::fill(array.begin(), array.end(), -1.F);
      if (std::vector<Floats> out = out_[i].read(); !out.empty()) *step.out = std::move(out);
    }
  }

 private:
  Waiter waiter_;
  std::vector<Step> steps_;
  std::vector<std::vector<Floats>> before_;
  std::vector<GpuArrays> in_;
  std::vector<GpuArrays> out_;
};

/// One worker's part of a store.
struct AnyStore {
  Store& store;
  const StoreMaker& maker;
  const int rank;
  /// None where the devices are the host's.
  const std::vector<int>& gpus;

  std::size_t devices() const { return gpus.empty() ? 2 : gpus.size(); }
  /// How many arrays a push of all workers sums.
  float arrays() const { return static_cast<float>(maker.workers) * static_cast<float>(devices()); }
  std::vector<Floats> everywhere(const Floats& value) const {
    return std::vector<Floats>(devices(), value);
  }
  RunningSteps begin(std::vector<Step> steps) const { return {store, gpus, std::move(steps)}; }
  void run(std::vector<Step> steps) const { begin(std::move(steps)).wait(); }
  std::vector<Floats> pulled(KeyId key, std::size_t count) const {
    std::vector<Floats> out = everywhere(Floats(count, -1));
    run({{OperationKind::pull, key, {}, &out}});
    return out;
  }
  void wait(const std::function<void(std::shared_ptr<Ticket>)>& request) const {
    Waiter waiter;
    request(waiter.ticket());
    waiter.wait();
  }
};

/// Runs body for each worker, and the servers beside them; what each threw.
inline std::vector<std::optional<Error>> onStores(
    const StoreMaker& maker, const std::function<void(const AnyStore&)>& body) {
  const std::vector<int> gpus = maker.onGpus ? gpusOf(maker.gpus) : std::vector<int>{};
  const bool onHost = maker.onGpus && maker.gpus.merge == GpuMerge::host;
  const auto runOn = [&](const std::unique_ptr<Store>& store, int rank) {
    body({*store, maker, rank, gpus});
    store->stop();
  };
  GpuDistOptions ofGpus;
  ofGpus.gpus = gpus;
  ofGpus.onHost = onHost;
  ofGpus.merge = onHost ? GpuMerge::peer : maker.gpus.merge;
  const std::size_t devices = !maker.onGpus ? 2 : onHost ? gpus.size() : 1;
  if (maker.way == StoreMaker::byAllReduce) {
    AllreduceStoreOptions options;
    options.devices = devices;
    options.fuseBytes = 4096;
    options.shardOptimizer = maker.sharded;
    options.timeoutMs = 20000;
    return onRanksTaken(maker.workers, [&](std::unique_ptr<Communicator> comm, int rank) {
      auto store = makeAllreduceStore(std::move(comm), options);
      runOn(maker.onGpus ? makeGpuAllreduceStore(std::move(store), ofGpus) : std::move(store),
            rank);
    });
  }
  if (maker.way == StoreMaker::overServers) {
    DistJob job;
    job.workers = maker.workers;
    job.servers = maker.servers;
    job.devices = devices;
    job.bigArrayBound = 500;
    job.mostStagedBytes = 64 << 10;  // far less than what is pushed
    const std::string name = freshName();
    return onThreads(job.workers + job.servers, [&](int rank) {
      if (rank >= job.workers) return serveOf(job, name, rank);
      auto store = workerOf(job, name, rank);
      runOn(maker.onGpus ? makeGpuDistStore(std::move(store), ofGpus) : std::move(store), rank);
    });
  }
  return onThreads(1, [&](int rank) {
    if (!maker.onGpus) return runOn(std::make_unique<LocalStore>(Placement::devices, 2), rank);
    GpuStoreOptions options;
    options.gpus = gpus;
    options.merge = maker.gpus.merge;
    options.peer = maker.gpus.peer;
    options.shardOptimizer = maker.gpus.sharded;
    // Short keys too: parts that are packed for NCCL, and parts that are not.
    options.leastShardBytes = 128;
    runOn(makeGpuStore(options), rank);
  });
}

}  // namespace gradlink::test
