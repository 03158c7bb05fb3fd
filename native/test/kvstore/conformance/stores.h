// Every kind of store there is, for the suite of what all of them do (conformance/*_test.cc). A new
// kind is a line of kStoreMakers; a new rule is one case, of the makers that can do it: STORES().
#pragma once

#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/local/local_store.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/staged/gpu_dist_store.h"
#include "test/kvstore/conformance/steps.h"
#include "test/kvstore/worker/support.h"

namespace gradlink::test {

struct StoreMaker {
  const char* name;
  enum Way { alone, overServers, byAllReduce } way = alone;
  int workers = 1;
  int servers = 0;
  /// Of servers. Only with one worker does such a store do what the others do.
  bool asynchronous = false;
  int serverThreads = 1;
  /// Whether arrays lie in memory that servers read: long ones, where a worker has one device.
  bool shared = false;
  /// Of a worker, where they are the host's.
  std::size_t devices = 2;
  bool onGpus = false;
  /// Of GPUs. `host`: sums are made in the host's memory.
  GpuMerge merge = GpuMerge::peer;
  bool oneGpu = false;
  bool peer = true;
  /// Whether GPUs, or workers without servers, share the optimizer's work.
  bool sharded = false;
  /// Of a store of the host alone.
  Placement placement = Placement::devices;

  // ---- what it can do
  bool several() const { return workers > 1; }
  bool onHost() const { return onGpus && merge == GpuMerge::host; }
  /// Whether arrays are summed in the order of devices and workers: NCCL has an order of its own.
  bool ordered() const { return !onGpus || merge != GpuMerge::nccl; }
  bool takesUpdaters() const { return way != overServers && !(onGpus && way == alone && sharded); }
  /// Whether a test can keep what it submits from being begun: Gate of held.h.
  bool canBeHeld() const { return several() || takesUpdaters(); }
  /// Whether what is begun first ends first: not where copies of several GPUs end by themselves,
  /// and not over GPUs and workers, which are several queues.
  bool endsAsBegun() const { return !onGpus || (way == alone && !onHost()); }
  bool compresses() const {
    if (way == alone) return onGpus ? !onHost() : placement == Placement::devices;
    return way == overServers;
  }
  bool readsRows() const { return !(onGpus && way == alone && sharded); }
  bool stepsRows() const { return !sharded; }
  /// Whether parts of a key are stepped apart from one another.
  bool cuts() const { return sharded || servers > 1; }
  bool steps(const Optimizer& optimizer) const {
    return !(optimizer.math().needsWhole() && cuts());
  }

  std::vector<int> gpus() const { return onGpus ? gpusOf(merge, oneGpu) : std::vector<int>{}; }
};
inline void PrintTo(const StoreMaker& maker, std::ostream* out) { *out << maker.name; }

inline constexpr auto kServers = StoreMaker::overServers;
inline constexpr auto kAllReduce = StoreMaker::byAllReduce;
// clang-format off
inline constexpr StoreMaker kStoreMakers[] = {
    {.name = "Local", .devices = 3},
    {.name = "LocalOnTheHost", .devices = 3, .placement = Placement::host},
    {.name = "OneServer", .way = kServers, .servers = 1, .devices = 3},
    {.name = "OneAsynchronous", .way = kServers, .servers = 2, .asynchronous = true},
    {.name = "TwoOnTwoServers", .way = kServers, .workers = 2, .servers = 2},
    {.name = "TwoOnTwoShared", .way = kServers, .workers = 2, .servers = 2, .shared = true,
     .devices = 1},
    {.name = "ThreeOnOne", .way = kServers, .workers = 3, .servers = 1, .serverThreads = 3},
    {.name = "FourOnThreeServers", .way = kServers, .workers = 4, .servers = 3},
    {.name = "AllReduceOfOne", .way = kAllReduce},
    {.name = "AllReduceOfTwo", .way = kAllReduce, .workers = 2, .devices = 3},
    {.name = "AllReduceOfSeven", .way = kAllReduce, .workers = 7, .devices = 1},
    {.name = "AllReduceInShards", .way = kAllReduce, .workers = 3, .sharded = true},
    {.name = "GpusByPeer", .onGpus = true},
    {.name = "OneGpu", .onGpus = true, .merge = GpuMerge::automatic, .oneGpu = true},
    {.name = "GpusByNccl", .onGpus = true, .merge = GpuMerge::nccl},
    {.name = "GpusByHost", .onGpus = true, .merge = GpuMerge::host},
    {.name = "GpusWithoutPeer", .onGpus = true, .merge = GpuMerge::automatic, .peer = false},
    {.name = "GpusInShards", .onGpus = true, .merge = GpuMerge::nccl, .sharded = true},
    {.name = "GpusInShardsByPeer", .onGpus = true, .sharded = true},
    {.name = "OneGpuInShards", .onGpus = true, .oneGpu = true, .sharded = true},
    {.name = "GpusInShardsWithoutPeer", .onGpus = true, .peer = false, .sharded = true},
    {.name = "GpusOnServers", .way = kServers, .workers = 2, .servers = 2, .onGpus = true},
    {.name = "GpusByHostOnServers", .way = kServers, .workers = 2, .servers = 2, .onGpus = true,
     .merge = GpuMerge::host},
    {.name = "GpusByNcclOnServers", .way = kServers, .workers = 2, .servers = 2, .onGpus = true,
     .merge = GpuMerge::nccl},
    {.name = "GpusByAllReduce", .way = kAllReduce, .workers = 2, .onGpus = true},
    {.name = "GpusShardsByAllReduce", .way = kAllReduce, .workers = 2, .onGpus = true,
     .sharded = true},
    {.name = "OneGpuShardOfThreeWorkers", .way = kAllReduce, .workers = 3, .onGpus = true,
     .oneGpu = true, .sharded = true},
    {.name = "GpusShardsOfOneWorker", .way = kAllReduce, .onGpus = true, .sharded = true},
};
// clang-format on

inline std::vector<StoreMaker> makersThat(bool (*can)(const StoreMaker&)) {
  std::vector<StoreMaker> makers;
  std::copy_if(std::begin(kStoreMakers), std::end(kStoreMakers), std::back_inserter(makers), can);
  return makers;
}

class StoresOfAMaker : public testing::TestWithParam<StoreMaker> {
 protected:
  void SetUp() override {
    const std::size_t least = GetParam().merge == GpuMerge::nccl ? 2 : 1;
    if (GetParam().onGpus && GetParam().gpus().size() < least) GTEST_SKIP() << "needs GPUs";
  }
};

/// A suite of the makers that can: `can` is an expression of `maker`.
#define STORES(Suite, can)                                                                         \
  class Suite : public StoresOfAMaker {};                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      Makers, Suite,                                                                               \
      testing::ValuesIn(makersThat([]([[maybe_unused]] const StoreMaker& maker) { return can; })), \
      [](const auto& info) { return std::string(info.param.name); })

/// One worker's part of a store.
struct AnyStore {
  Store& store;
  const StoreMaker& maker;
  const int rank;
  const ArrayPlaces places;
  /// Of several workers.
  const std::function<void(std::shared_ptr<Ticket>)> leave;

  bool several() const { return maker.several(); }
  std::size_t devices() const { return places.gpus.empty() ? maker.devices : places.gpus.size(); }
  /// How many arrays a push of all workers sums.
  std::size_t arrays() const { return static_cast<std::size_t>(maker.workers) * devices(); }
  float arraysAsFloat() const { return static_cast<float>(arrays()); }
  /// The number of this worker's first device among those of all workers.
  int firstDevice() const { return rank * static_cast<int>(devices()); }

  template <class Array>
  std::vector<Array> everywhere(const Array& value) const {
    return std::vector<Array>(devices(), value);
  }
  /// What each of this worker's devices pushes, by its number among those of all workers.
  template <class Of>
  auto own(const Of& of) const {
    std::vector<decltype(of(0))> all;
    for (std::size_t i = 0; i < devices(); ++i)
      all.push_back(of(firstDevice() + static_cast<int>(i)));
    return all;
  }
  template <class Of>
  auto all(const Of& of) const {
    std::vector<decltype(of(0))> arrays;
    for (std::size_t i = 0; i < this->arrays(); ++i) arrays.push_back(of(static_cast<int>(i)));
    return arrays;
  }

  template <class Array = Floats>
  RunningSteps<Array> begin(
      std::vector<StepOf<Array>> steps, bool here = false,
      const std::function<std::shared_ptr<Ticket>(std::size_t)>& told = {}) const {
    return {store, places, std::move(steps), here, told};
  }
  template <class Array = Floats>
  void run(std::vector<StepOf<Array>> steps) const {
    begin<Array>(std::move(steps)).wait();
  }
  template <class Array = Floats>
  std::vector<Array> pulled(KeyId key, std::size_t count) const {
    std::vector<Array> out = everywhere(Array(count, 77));
    run<Array>({{OperationKind::pull, key, {}, &out}});
    return out;
  }
  template <class Array>
  KeyId define(const std::string& name, DType dtype, const Array& value,
               std::size_t rowLength = 1) const {
    const KeyId key =
        store.define(name, dtype, value.size() * sizeof(value[0]) / sizeOf(dtype), rowLength);
    // From one of the devices.
    run<Array>({{OperationKind::init, key, {value}}});
    return key;
  }
  KeyId define(const std::string& name, const Floats& value, std::size_t rowLength = 1) const {
    return define(name, DType::float32, value, rowLength);
  }
  void wait(const std::function<void(std::shared_ptr<Ticket>)>& request) const { waitFor(request); }
  void barrier() const { meet(store); }
};

/// What one store of the host gives for the arrays of all workers' devices.
class Twin {
 public:
  explicit Twin(const AnyStore& store)
      : maker_{.name = "Twin", .devices = store.arrays()},
        alone_(maker_.placement, maker_.devices),
        store_{alone_, maker_, 0, {}, {}} {}
  const AnyStore& operator*() const { return store_; }
  const AnyStore* operator->() const { return &store_; }
  template <class Array = Floats>
  Array pulled(KeyId key, std::size_t count) const {
    return store_.pulled<Array>(key, count)[0];
  }

 private:
  const StoreMaker maker_;
  LocalStore alone_;
  const AnyStore store_;
};

/// Short keys are cut too: parts that are packed for NCCL, and parts that are not.
inline constexpr std::size_t kLeastShardBytes = 128;

/// Runs body for each worker, and the servers beside them; what each threw.
inline std::vector<std::optional<Error>> onStores(
    const StoreMaker& maker, const std::function<void(const AnyStore&)>& body) {
  const std::vector<int> gpus = maker.gpus();
  const auto runOn = [&](const auto& store, int rank) {
    std::function<void(std::shared_ptr<Ticket>)> leave;
    if constexpr (requires { store->leave(nullptr); }) {
      leave = [&](std::shared_ptr<Ticket> ticket) { store->leave(std::move(ticket)); };
    }
    ArrayPlaces places{gpus};
    if constexpr (requires { store->allocShared(1); }) {
      if (maker.shared) places.shared = store.get();
    }
    body({*store, maker, rank, places, leave});
    store->stop();
  };
  GpuDistOptions ofGpus{.gpus = gpus,
                        .onHost = maker.onHost(),
                        .merge = maker.onHost() ? GpuMerge::peer : maker.merge,
                        .leastShardBytes = kLeastShardBytes};
  const std::size_t devices = !maker.onGpus ? maker.devices : ofGpus.innerDevices();
  if (maker.way == kAllReduce) {
    AllreduceStoreOptions options{
        .devices = devices, .fuseBytes = 4096, .shardOptimizer = maker.sharded, .timeoutMs = 20000};
    return onRanksTaken(maker.workers, [&](std::unique_ptr<Communicator> comm, int rank) {
      runOn(maker.onGpus ? makeGpuAllreduceStore(std::move(comm), options, ofGpus)
                         : makeAllreduceStore(std::move(comm), options),
            rank);
    });
  }
  if (maker.way == kServers) {
    DistJob job{.workers = maker.workers,
                .servers = maker.servers,
                .devices = devices,
                .asynchronous = maker.asynchronous,
                .bigArrayBound = 500,
                .serverThreads = maker.serverThreads};
    job.mostStagedBytes = 64 << 10;  // far less than what is pushed
    const std::string name = freshName();
    return onThreads(job.workers + job.servers, [&](int rank) {
      if (rank >= job.workers) return serveOf(job, name, rank);
      auto store = workerOf(job, name, rank);
      runOn(maker.onGpus ? makeGpuDistStore(std::move(store), ofGpus) : std::move(store), rank);
    });
  }
  return onThreads(1, [&](int rank) {
    if (!maker.onGpus) return runOn(std::make_unique<LocalStore>(maker.placement, devices), rank);
    GpuStoreOptions options{.gpus = gpus,
                            .merge = maker.merge,
                            .peer = maker.peer,
                            .leastShardBytes = kLeastShardBytes};
    if (maker.sharded) options.shardOptimizer = true;
    runOn(makeGpuStore(options), rank);
  });
}

/// Runs body for each worker, none of which may fail.
inline void onEveryStore(const StoreMaker& maker,
                         const std::function<void(const AnyStore&)>& body) {
  expectNone(onStores(maker, body));
}

/// What one of all workers' devices pushes: whole numbers, of which any order gives the same sum.
inline Floats pushedBy(int device, int round, std::size_t count) {
  Floats values(count);
  // Plain pointers: tests are compiled without optimisation, and a vector's operators are calls.
  float* const to = values.data();
  const int from = 31 * device + 17 * round;
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>((from + 7 * static_cast<int>(i)) % 997 - 500);
  }
  return values;
}
inline std::vector<Floats> ownOf(const AnyStore& store, int round, std::size_t count) {
  return store.own([&](int device) { return pushedBy(device, round, count); });
}
inline Floats sumOf(const AnyStore& store, int round, std::size_t count) {
  Floats sum(count);
  for (const Floats& one : store.all([&](int device) { return pushedBy(device, round, count); })) {
    float* const to = sum.data();
    const float* const from = one.data();
    for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
  }
  return sum;
}
inline std::vector<Floats> sumsOf(const AnyStore& store, int round, std::size_t count) {
  return store.everywhere(sumOf(store, round, count));
}

inline std::shared_ptr<Optimizer> momentumOf(double rate) {
  return optimizerOf("sgd", {{"learningRate", rate}, {"momentum", 0.5}});
}

/// What body is refused with, which leaves the store usable.
inline std::string refusedBy(ErrorCode code, const std::function<void()>& body) {
  return cuda::messageOf(code, body);
}

}  // namespace gradlink::test
