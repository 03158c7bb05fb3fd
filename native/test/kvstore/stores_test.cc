// What every store does, over all there are (stores.h). What one kind does on its own is tested in
// its folder.
#include "test/kvstore/stores.h"

#include <map>
#include <numeric>

#include "test/folder.h"

namespace gradlink::test {
namespace {

using enum OperationKind;

class Stores : public testing::TestWithParam<StoreMaker> {
 protected:
  void SetUp() override {
    const std::size_t least = GetParam().gpus.merge == GpuMerge::nccl ? 2 : 1;
    if (GetParam().onGpus && gpusOf(GetParam().gpus).size() < least) GTEST_SKIP() << "needs GPUs";
  }
};

INSTANTIATE_TEST_SUITE_P(Makers, Stores, testing::ValuesIn(kStoreMakers),
                         [](const auto& info) { return std::string(info.param.name); });

/// Without those that refuse rows: see shards_test.cc.
std::vector<StoreMaker> makersOfRows(bool thatStep) {
  std::vector<StoreMaker> makers(std::begin(kStoreMakers), std::end(kStoreMakers));
  std::erase_if(
      makers, [&](const StoreMaker& one) { return one.gpus.sharded || (thatStep && one.sharded); });
  return makers;
}
class StoresThatReadRows : public Stores {};
class StoresThatStepRows : public Stores {};
INSTANTIATE_TEST_SUITE_P(Makers, StoresThatReadRows, testing::ValuesIn(makersOfRows(false)),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Makers, StoresThatStepRows, testing::ValuesIn(makersOfRows(true)),
                         [](const auto& info) { return std::string(info.param.name); });

/// What one of all workers' devices pushes: whole numbers, of which any order gives the same sum.
Floats pushedBy(int device, int round, std::size_t count) {
  Floats values(count);
  const int from = 31 * device + 17 * round;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((from + 7 * static_cast<int>(i)) % 997 - 500);
  }
  return values;
}
std::vector<Floats> ownOf(const AnyStore& store, int round, std::size_t count) {
  const int devices = static_cast<int>(store.devices());
  std::vector<Floats> own;
  for (int i = 0; i < devices; ++i) {
    own.push_back(pushedBy(store.rank * devices + i, round, count));
  }
  return own;
}
std::vector<Floats> sumsOf(const AnyStore& store, int round, std::size_t count) {
  Floats sum(count);
  for (int device = 0; device < static_cast<int>(store.arrays()); ++device) {
    const Floats one = pushedBy(device, round, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += one[i];
  }
  return store.everywhere(sum);
}

std::shared_ptr<Optimizer> momentum(double rate) {
  return Optimizer::create(specOf("sgd", {{"learningRate", rate}, {"momentum", 0.5}}));
}

TEST_P(Stores, AssignTheSumOfEachPush) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    // Beside where servers cut keys, what is packed with others, and pieces.
    for (const std::size_t count : {0, 1, 63, 499, 500, 1024, 1025, 16'384, 16'385, 70'001}) {
      // Worker 0's value counts.
      const KeyId key = defineWith(store.store, std::to_string(count),
                                   Floats(count, 5 + static_cast<float>(store.rank)));
      EXPECT_EQ(store.pulled(key, count), store.everywhere(Floats(count, 5))) << count;
      store.run({{push, key, ownOf(store, 0, count)}});
      EXPECT_EQ(store.pulled(key, count), sumsOf(store, 0, count)) << count;
      // A pull that rides along with its push, and one that comes after.
      std::vector<Floats> riding = store.everywhere(Floats(count, -1));
      store.run({{push, key, ownOf(store, 1, count)}, {pull, key, {}, &riding}});
      EXPECT_EQ(riding, sumsOf(store, 1, count)) << count;
      EXPECT_EQ(store.pulled(key, count), riding) << count;
      // On the caller's thread, where the store can.
      std::vector<Floats> both = ownOf(store, 2, count);
      RunningSteps(store.store, store.gpus, {{pushPull, key, {}, &both}}, true).wait();
      EXPECT_EQ(both, sumsOf(store, 2, count)) << count;
    }
  }));
}

TEST_P(Stores, KeysOfOneCallKeepApartInWhateverOrder) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kKeys = 30;
    const auto countOf = [](std::size_t k) {
      constexpr std::size_t kCounts[] = {0, 10, 499, 1024, 1025, 6000, 18'000};
      return kCounts[k % std::size(kCounts)];
    };
    std::vector<KeyId> keys;
    for (std::size_t k = 0; k < kKeys; ++k) {
      keys.push_back(defineWith(store.store, std::to_string(k), Floats(countOf(k))));
    }
    std::vector<std::size_t> order(kKeys);
    std::iota(order.begin(), order.end(), 0);
    if (store.rank == 1) std::reverse(order.begin(), order.end());
    if (store.rank == 2) std::rotate(order.begin(), order.begin() + 17, order.end());
    for (int round = 1; round <= 2; ++round) {
      std::vector<std::vector<Floats>> out;
      for (std::size_t k = 0; k < kKeys; ++k) {
        out.push_back(store.everywhere(Floats(countOf(k), -1)));
      }
      std::vector<Step> steps;
      for (const std::size_t k : order) {
        const auto value = static_cast<float>(k + 100 * static_cast<std::size_t>(round));
        steps.push_back({push, keys[k], store.everywhere(Floats(countOf(k), value))});
        steps.back().priority = static_cast<int>(k) * (store.rank - 1);
      }
      for (std::size_t k = 0; k < kKeys; ++k) steps.push_back({pull, keys[k], {}, &out[k]});
      store.run(std::move(steps));
      for (std::size_t k = 0; k < kKeys; ++k) {
        const auto value = static_cast<float>(k + 100 * static_cast<std::size_t>(round));
        EXPECT_EQ(out[k], store.everywhere(Floats(countOf(k), store.arrays() * value))) << k;
      }
    }
  }));
}

TEST_P(Stores, OperationsOnOneKeyKeepTheirOrder) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    constexpr std::size_t kTimes = 20;
    const KeyId key = defineWith(store.store, "a", Floats(1000));
    std::vector<std::vector<Floats>> out(kTimes, store.everywhere(Floats(1000, -1)));
    std::vector<RunningSteps> running;
    running.reserve(kTimes);
    for (std::size_t i = 0; i < kTimes; ++i) {
      const int urgency = static_cast<int>(i);
      const std::vector<Floats> in = store.everywhere(Floats(1000, static_cast<float>(i + 1)));
      running.push_back(
          store.begin({{push, key, in, nullptr, -urgency}, {pull, key, {}, &out[i], urgency}}));
    }
    for (RunningSteps& one : running) one.wait();
    for (std::size_t i = 0; i < kTimes; ++i) {
      const float sum = static_cast<float>(i + 1) * store.arrays();
      EXPECT_EQ(out[i], store.everywhere(Floats(1000, sum))) << i;
    }
  }));
}

TEST_P(Stores, StepOnceARoundAtTheRateOfTheTime) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    std::map<std::size_t, KeyId> keys;
    for (const std::size_t count : {100, 100'000}) {
      keys[count] = defineWith(store.store, std::to_string(count), Floats(count, 1));
    }
    const auto expectAfter = [&](float gradient, float value) {
      for (const auto& [count, key] : keys) {
        std::vector<Floats> both = store.everywhere(Floats(count, gradient));
        store.run({{pushPull, key, {}, &both}});
        EXPECT_EQ(both, store.everywhere(Floats(count, value))) << count;
      }
    };
    store.store.setOptimizer(Optimizer::create(specOf("sgd", {{"learningRate", 0.5}})));
    const float sum = 2 * store.arrays();
    expectAfter(2, 1 - 0.5F * sum);
    store.wait([&](auto ticket) { store.store.setLearningRate(0.25, ticket); });
    expectAfter(2, 1 - 0.75F * sum);
    store.store.setOptimizer(nullptr);
    expectAfter(3, 3 * store.arrays());
  }));
}

/// Those whose sums are made here, and not by NCCL or on GPUs.
class StoresOfTheHost : public Stores {};
std::vector<StoreMaker> makersOfTheHost() {
  std::vector<StoreMaker> makers(std::begin(kStoreMakers), std::end(kStoreMakers));
  std::erase_if(makers, [](const StoreMaker& one) { return one.onGpus; });
  return makers;
}
INSTANTIATE_TEST_SUITE_P(Makers, StoresOfTheHost, testing::ValuesIn(makersOfTheHost()),
                         [](const auto& info) { return std::string(info.param.name); });

// One large value and many ones, which each half alone would lose; and the largest ones of both
// signs, of which two overflow.
TEST_P(StoresOfTheHost, SumsOfHalvesAreRoundedOnce) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    const int all = static_cast<int>(store.arrays());
    constexpr std::size_t kCount = 1025;
    using Halves = std::vector<std::uint16_t>;
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      const bool brain = dtype == DType::bfloat16;
      const float base = brain ? 256 : 2048;
      const float most = brain ? 0x1.FEp127F : 65504;
      std::vector<Halves> in;
      Halves expected(kCount);
      for (int device = 0; device < all; ++device) {
        Floats values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          const float sign = device < all / 2 ? 1.F : -1.F;
          values[i] = i % 2 == 1 ? sign * most : device == 0 ? base : 1;
        }
        narrow(values.data(), in.emplace_back(kCount).data(), kCount, dtype);
      }
      Floats sums(kCount);
      for (std::size_t i = 0; i < kCount; i += 2) sums[i] = base + static_cast<float>(all - 1);
      narrow(sums.data(), expected.data(), kCount, dtype);
      const auto pushed = [&](const char* name, std::int32_t bits) {
        const KeyId key = store.store.define(name + std::to_string(bits), dtype, kCount, 1);
        Halves value(kCount);
        std::vector<Halves> out(2, Halves(kCount, 7));
        Waiter waiter;
        std::vector<Operation> operations(3);
        operations[0].kind = init;
        operations[0].in = {value.data()};
        operations[1].kind = push;
        operations[2].kind = pull;
        for (std::size_t device = 0; device < 2; ++device) {
          operations[1].in.push_back(in[static_cast<std::size_t>(store.rank) * 2 + device].data());
          operations[2].out.push_back(out[device].data());
        }
        const auto ticket = waiter.ticket();
        for (Operation& operation : operations) {
          operation.key = key;
          operation.ticket = ticket;
        }
        store.store.submit(std::move(operations), false);
        waiter.wait();
        EXPECT_EQ(out[0], out[1]);
        return out[0];
      };
      EXPECT_EQ(pushed("assigned", brain), expected);
      // What is stepped at a rate of 1 from 0 is the sum with the other sign.
      store.store.setOptimizer(Optimizer::create(specOf("sgd", {{"learningRate", 1}})));
      Halves stepped = pushed("stepped", brain);
      for (std::size_t i = 0; i < kCount; i += 2) stepped[i] ^= 0x8000;
      EXPECT_EQ(stepped, expected);
      store.store.setOptimizer(nullptr);
    }
  }));
}

TEST_P(Stores, StatesGoOnFromAFile) {
  const TestFolder folder;
  const std::string file = folder.file("states");
  constexpr std::size_t kCount = 3000;
  Floats value(kCount);
  std::vector<Floats> last;
  expectNone(onStores(GetParam(), [&](const AnyStore& store) {
    const KeyId key = defineWith(store.store, "w", Floats(kCount, 8));
    store.store.setOptimizer(momentum(0.5));
    for (const int round : {0, 1}) store.run({{push, key, ownOf(store, round, kCount)}});
    const std::vector<Floats> saved = store.pulled(key, kCount);
    store.wait([&](auto ticket) { store.store.saveStates(file, true, ticket); });
    store.run({{push, key, ownOf(store, 2, kCount)}});
    const std::vector<Floats> after = store.pulled(key, kCount);
    if (store.rank != 0) return;
    value = saved[0];
    last = after;
  }));
  expectNone(onStores(GetParam(), [&](const AnyStore& store) {
    const KeyId key = defineWith(store.store, "w", value);
    store.wait([&](auto ticket) { store.store.loadStates(file, ticket); });
    store.run({{push, key, ownOf(store, 2, kCount)}});
    EXPECT_EQ(store.pulled(key, kCount), last);
    EXPECT_NE(last, sumsOf(store, 2, kCount)) << "assigned, not stepped";
  }));
}

constexpr std::size_t kRowLength = 3;
constexpr std::size_t kRowCount = 400;  // which servers cut

/// Now and then none, a row twice, a row that all bring, and one of its own.
std::vector<std::int64_t> rowsOf(int device, int round) {
  if ((device + round) % 3 == 2) return {};
  return {7, device % 50, 399 - round, 7};
}

TEST_P(StoresThatStepRows, PushesOfRowsAreOneStepOfTheirSum) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    // A store that gets them all, as whole arrays where pushes assign.
    LocalStore alone(Placement::devices, static_cast<std::size_t>(store.arrays()));
    Floats first(kRowLength * kRowCount);
    std::iota(first.begin(), first.end(), 1.F);
    const auto defined = [&](Store& made, const std::string& name) {
      return defineWith(made, name, first, kRowLength);
    };
    for (const bool steps : {false, true}) {
      const std::string name = steps ? "stepped" : "assigned";
      const KeyId key = defined(store.store, name);
      const KeyId twin = defined(alone, name);
      if (steps) {
        store.store.setOptimizer(momentum(0.5));
        alone.setOptimizer(momentum(0.5));
      }
      for (int round = 0; round < 4; ++round) {
        const auto stepOf = [&](KeyId of, int from, int to) {
          Step step{push, of};
          for (int device = from; device < to; ++device) {
            step.inRows.push_back(rowsOf(device, round));
            const std::size_t count = step.inRows.back().size() * kRowLength;
            step.in.push_back(pushedBy(device, round, count));
          }
          return step;
        };
        const int devices = static_cast<int>(store.devices());
        store.run({stepOf(key, store.rank * devices, (store.rank + 1) * devices)});
        RunningSteps(alone, {}, {stepOf(twin, 0, static_cast<int>(store.arrays()))}).wait();
        std::vector<Floats> expected{Floats(first.size())};
        RunningSteps(alone, {}, {{pull, twin, {}, &expected}}).wait();
        EXPECT_EQ(store.pulled(key, first.size()), store.everywhere(expected[0])) << name << round;
      }
    }
  }));
}

TEST_P(StoresThatReadRows, RowsThatAreNotAskedForReadAsZero) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    // Rows of which servers have parts, also of one piece each, and several in one.
    for (const std::size_t row : {6, 30'000}) {
      Floats value(10 * row);
      std::iota(value.begin(), value.end(), 1.F);
      const KeyId key = defineWith(store.store, std::to_string(row), value, row);
      std::vector<Floats> out = store.everywhere(Floats(value.size(), -1));
      store.run({{rowSparsePull, key, {}, &out, 0, {7, 2, 3, 7}}});
      for (std::size_t i = 0; i < value.size(); ++i) {
        const std::size_t at = i / row;
        if (at != 7 && at != 2 && at != 3) value[i] = 0;
      }
      EXPECT_EQ(out, store.everywhere(value));
    }
  }));
}

TEST_P(Stores, RefuseWhatDoesNotFitAndGoOn) {
  expectNone(onStores(GetParam(), [](const AnyStore& store) {
    const auto refused = [](const std::function<void()>& body) {
      return cuda::messageOf(ErrorCode::invalidArgument, body);
    };
    const KeyId key = defineWith(store.store, "a", Floats(4));
    refused([&] { store.store.define("a", DType::float32, 4, 1); });
    refused([&] { store.store.define("b", DType::float32, 4, 3); });
    const std::vector<Floats> ones = store.everywhere(Floats(4, 1));
    refused([&] { store.run({{push, key + 1, ones}}); });
    refused([&] { store.run({{push, key}}); });
    refused([&] { store.wait([&](auto ticket) { store.store.setLearningRate(1, ticket); }); });
    store.wait([&](auto ticket) { store.store.barrier(ticket); });
    // Integers have no optimizer: that push's failure alone.
    const KeyId integers = store.store.define("integers", DType::int32, 4, 1);
    store.run({{init, integers, {Floats(4)}}});
    store.store.setOptimizer(momentum(1));
    std::vector<Floats> both = ones;
    const std::string text = refused([&] { store.run({{pushPull, integers, {}, &both}}); });
    EXPECT_EQ(lacking(text, {"key integers", "int32"}), "") << text;
    store.run({{push, key, ones}});
    EXPECT_EQ(store.pulled(key, 4), store.everywhere(Floats(4, -store.arrays())));
  }));
}

}  // namespace
}  // namespace gradlink::test
