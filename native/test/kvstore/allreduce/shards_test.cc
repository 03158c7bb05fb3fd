// The store without servers whose workers step a part of every key each: the same bits as where
// every worker steps all of it.
#include "kvstore/allreduce/shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/reduce_kernels.h"
#include "kvstore/allreduce/allreduce_store.h"
#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kLengths[] = {1, 0, 31, 33, 1000, 5003};
constexpr int kDevices = 2;

struct Rule {
  std::string name;
  std::map<std::string, double> numbers;
};

const Rule kMomentum{"sgd", {{"learningRate", 0.1}, {"momentum", 0.9}, {"wd", 0.01}}};
const Rule kAdam{"adam", {{"learningRate", 0.01}}};

std::shared_ptr<Optimizer> made(const Rule& rule, bool halves = false) {
  OptimizerSpec spec;
  spec.name = rule.name;
  spec.numbers = rule.numbers;
  if (halves) spec.numbers["multiPrecision"] = 1;
  return Optimizer::create(spec);
}

/// `count` numbers of that type, differing by seed.
Bytes numbers(std::size_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& x : values) x = uniform(random);
  Bytes bytes(count * sizeOf(dtype));
  if (dtype == DType::float32 && count != 0) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else if (count != 0) {
    narrow(values.data(), bytes.data(), count, dtype);
  }
  return bytes;
}

/// The keys of a test, and what is done to all of them at once.
class Keys {
 public:
  Keys(Store& store, DType dtype) : store_(store), dtype_(dtype) {
    for (const std::size_t length : kLengths) {
      const std::string name = "k" + std::to_string(length);
      const KeyId key = store.define(name, dtype, length, 1);
      const Bytes value = numbers(length, dtype, 7);
      Waiter waiter;
      Operation init;
      init.kind = OperationKind::init;
      init.key = key;
      init.in = {value.data()};
      init.ticket = waiter.ticket();
      submitOne(store, std::move(init));
      waiter.wait();
      ids_.push_back(key);
    }
  }

  /// Pushes gradients of this rank's and pulls what becomes of them.
  std::vector<Bytes> step(int rank, int round) {
    std::vector<Bytes> in;
    std::vector<Bytes> out;
    in.reserve(ids_.size() * kDevices);
    out.reserve(ids_.size());
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      Operation both;
      both.kind = OperationKind::pushPull;
      both.key = ids_[i];
      for (int device = 0; device < kDevices; ++device) {
        const auto seed = static_cast<unsigned>(1000 * round + 100 * rank + 10 * device) +
                          static_cast<unsigned>(i);
        in.push_back(numbers(kLengths[i], dtype_, seed));
        both.in.push_back(in.back().data());
      }
      out.emplace_back(in.back().size());
      both.out = {out.back().data()};
      both.ticket = ticket;
      operations.push_back(std::move(both));
    }
    store_.submit(std::move(operations));
    waiter.wait();
    return out;
  }

 private:
  Store& store_;
  const DType dtype_;
  std::vector<KeyId> ids_;
};

void barrier(Store& store) {
  Waiter waiter;
  store.barrier(waiter.ticket());
  waiter.wait();
}

using ReturningWorker = std::function<std::vector<Bytes>(Store& store, int rank)>;

/// What worker 0 returned; all must have returned the same.
std::vector<Bytes> onWorkers(int workers, bool sharded, const ReturningWorker& worker,
                             std::size_t fuseBytes = AllreduceStoreOptions{}.fuseBytes) {
  std::vector<std::vector<Bytes>> results(static_cast<std::size_t>(workers));
  expectNone(onRanksTaken(workers, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store = makeAllreduceStore(std::move(comm), {.devices = kDevices,
                                                            .fuseBytes = fuseBytes,
                                                            .shardOptimizer = sharded,
                                                            .timeoutMs = 20000});
    results[static_cast<std::size_t>(rank)] = worker(*store, rank);
    store->stop();
  }));
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  return results.front();
}

std::vector<std::optional<Error>> errorsOf(int workers,
                                           const std::function<void(Store&, int)>& worker) {
  return onRanksTaken(workers, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store =
        makeAllreduceStore(std::move(comm), {.shardOptimizer = true, .timeoutMs = 20000});
    worker(*store, rank);
    store->stop();
  });
}

std::vector<Bytes> several(Keys& keys, int rank, int rounds) {
  std::vector<Bytes> all;
  for (int round = 0; round < rounds; ++round) {
    for (Bytes& one : keys.step(rank, round)) all.push_back(std::move(one));
  }
  return all;
}

TEST(KvstoreAllreduceShards, EveryElementHasOneWorker) {
  for (const int workers : {2, 3, 4, 7}) {
    for (const std::size_t count : kLengths) {
      const AllreduceShards shards(0, workers);
      std::size_t next = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const auto [first, size] = shards.partOf(worker, count);
        EXPECT_EQ(first, next);
        EXPECT_LE(size, shards.roomOf(count));
        next = first + size;
      }
      EXPECT_EQ(next, count);
      // One worker's room is its share, but for what whole cache lines take.
      EXPECT_LT(shards.roomOf(count), count / static_cast<std::size_t>(workers) + 33);
    }
  }
}

TEST(KvstoreAllreduceShards, StepsGiveTheBitsOfWholeOnes) {
  const Rule noise{"sgld", {{"learningRate", 0.1}, {"seed", 3}}};
  const Rule delay{"dcasgd", {{"learningRate", 0.1}, {"momentum", 0.9}}};
  for (const Rule& rule : {kMomentum, kAdam, noise, delay}) {
    for (const int workers : {1, 2, 3, 4, 7}) {
      for (const DType dtype : {DType::float32, DType::float16}) {
        const ReturningWorker worker = [&](Store& store, int rank) {
          Keys keys(store, dtype);
          store.setOptimizer(made(rule, dtype == DType::float16));
          return several(keys, rank, 3);
        };
        const std::vector<Bytes> whole = onWorkers(workers, false, worker);
        EXPECT_EQ(onWorkers(workers, true, worker), whole) << rule.name << " " << workers;
        EXPECT_EQ(onWorkers(workers, true, worker, 512), whole) << "keys by themselves";
      }
    }
  }
}

TEST(KvstoreAllreduceShards, WhatElseChangesAValueIsSeenByTheNextStep) {
  const ReturningWorker worker = [](Store& store, int rank) {
    Keys keys(store, DType::float32);
    std::vector<Bytes> all;
    const auto add = [&](std::vector<Bytes> some) {
      for (Bytes& one : some) all.push_back(std::move(one));
    };
    store.setOptimizer(made(kMomentum));
    add(several(keys, rank, 2));
    store.setOptimizer(nullptr);  // pushes assign
    add(keys.step(rank, 5));
    store.setOptimizer(made(kAdam));
    add(several(keys, rank, 2));
    Waiter rate;
    store.setLearningRate(0.5, rate.ticket());
    rate.wait();
    add(several(keys, rank, 2));
    return all;
  };
  EXPECT_EQ(onWorkers(3, true, worker), onWorkers(3, false, worker));
}

TEST(KvstoreAllreduceShards, AFileOfStatesIsThatOfWholeSteps) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("gradlink-allreduce-shards-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (const DType dtype : {DType::float32, DType::float16}) {
    const auto fileOf = [&](bool sharded) { return (folder / (sharded ? "s" : "w")).string(); };
    const auto saving = [&](bool sharded) -> ReturningWorker {
      return [&, sharded](Store& store, int rank) {
        Keys keys(store, dtype);
        store.setOptimizer(made(kAdam, dtype == DType::float16));
        std::vector<Bytes> all = several(keys, rank, 2);
        Waiter save;
        store.saveStates(fileOf(sharded), true, save.ticket());
        save.wait();
        for (Bytes& one : several(keys, rank, 2)) all.push_back(std::move(one));
        return all;
      };
    };
    EXPECT_EQ(onWorkers(3, true, saving(true)), onWorkers(3, false, saving(false)));
    const auto contents = [&](bool sharded) {
      std::ifstream file(fileOf(sharded), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    EXPECT_FALSE(contents(true).empty());
    EXPECT_EQ(contents(true), contents(false));
    // Read by more workers than wrote it.
    const ReturningWorker loading = [&](Store& store, int rank) {
      Keys keys(store, dtype);
      Waiter load;
      store.loadStates(fileOf(true), load.ticket());
      load.wait();
      return several(keys, rank, 2);
    };
    EXPECT_EQ(onWorkers(4, true, loading), onWorkers(4, false, loading));
  }
  std::filesystem::remove_all(folder);
}

TEST(KvstoreAllreduceShards, SavingWithoutAnOptimizerFailsOnTheWorkerThatWrites) {
  expectNone(errorsOf(2, [](Store& store, int rank) {
    makeKey(store, "w", Floats(3, 1));
    Waiter save;
    store.saveStates("/nowhere/states", false, save.ticket());
    try {
      save.wait();
      EXPECT_NE(rank, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalidArgument) << error.what();
      EXPECT_NE(std::string(error.what()).find("an optimizer"), std::string::npos);
    }
    barrier(store);
  }));
}

TEST(KvstoreAllreduceShards, AnOptimizerThatNeedsTheWholeIsRefused) {
  expectNone(errorsOf(2, [](Store& store, int /*rank*/) {
    const KeyId key = makeKey(store, "w", Floats(3, 1));
    for (const char* name : {"lamb", "lars", "groupadagrad"}) {
      try {
        store.setOptimizer(made({name, {}}));
        ADD_FAILURE() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::unsupported);
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
    std::vector<Floats> arrays{Floats(3, 1)};
    run(store, OperationKind::push, key, arrays);
  }));
}

TEST(KvstoreAllreduceShards, AnIntegerKeyIsRefusedAlone) {
  expectNone(errorsOf(2, [](Store& store, int /*rank*/) {
    const KeyId floats = makeKey(store, "floats", Floats(2, 0));
    const KeyId ints = store.define("ints", DType::int32, 2, 1);
    store.setOptimizer(made(kMomentum));
    std::vector<Floats> arrays{Floats(2, 1)};
    EXPECT_THROW(run(store, OperationKind::push, ints, arrays), Error);
    run(store, OperationKind::push, floats, arrays);
  }));
}

TEST(KvstoreAllreduceShards, AnOptimizerOnSomeWorkersAloneIsAMismatch) {
  const auto errors = errorsOf(2, [](Store& store, int rank) {
    const KeyId key = makeKey(store, "w", Floats(2, 0));
    if (rank == 0) store.setOptimizer(made(kMomentum));
    std::vector<Floats> arrays{Floats(2, 1)};
    run(store, OperationKind::push, key, arrays);
  });
  expectAll(errors, ErrorCode::mismatch);
}

TEST(KvstoreAllreduceShards, AWorkerThatHasLeftStillStepsItsPart) {
  const auto worker = [](Store& store, int rank) {
    const std::size_t count = 100;
    const KeyId key = makeKey(store, "w", Floats(count, 1));
    store.setOptimizer(made(kMomentum));
    std::vector<Floats> arrays{Floats(count, 0.5F)};
    run(store, OperationKind::push, key, arrays);
    if (rank != 1) {
      for (int i = 0; i < 3; ++i) run(store, OperationKind::push, key, arrays);
    }
    Waiter left;
    store.leave(left.ticket());
    left.wait();
    barrier(store);
    std::vector<Floats> out{Floats(count)};
    run(store, OperationKind::pull, key, out);
    Bytes bytes(count * sizeof(float));
    std::memcpy(bytes.data(), out.front().data(), bytes.size());
    return std::vector<Bytes>{bytes};
  };
  EXPECT_EQ(onWorkers(3, true, worker), onWorkers(3, false, worker));
}

TEST(KvstoreAllreduceShards, AChangeThatAWorkerThatLeftDoesNotFollowIsRefusedOnAll) {
  const auto errors = errorsOf(2, [](Store& store, int rank) {
    const KeyId key = makeKey(store, "w", Floats(100, 1));
    store.setOptimizer(made(kMomentum));
    std::vector<Floats> arrays{Floats(100, 1)};
    run(store, OperationKind::push, key, arrays);
    if (rank == 1) {
      Waiter left;
      store.leave(left.ticket());
      left.wait();
      // Over when the other has left or failed.
      barrier(store);
      return;
    }
    // ReturningWorker 1 has left once a push that it took no part in is done.
    run(store, OperationKind::push, key, arrays);
    store.setOptimizer(made(kAdam));
    run(store, OperationKind::push, key, arrays);
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->code, ErrorCode::aborted);
  EXPECT_EQ(lacking(errors[0]->what(), {"the optimizer", "shardOptimizer"}), "")
      << errors[0]->what();
}

}  // namespace
}  // namespace gradlink::test
