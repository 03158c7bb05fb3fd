// Pushes and pulls of some rows of a key, in every store that has them.
#include <numeric>

#include "kvstore/base/rows.h"
#include "test/kvstore/conformance/stores.h"

namespace gradlink::test {
namespace {

using enum OperationKind;
using RowNumbers = std::vector<std::int64_t>;

STORES(StoreRowsPulled, maker.readsRows());
STORES(StoreRowsPulledAlone, maker.readsRows() && !maker.onGpus);
STORES(StoreRowsPushed, maker.stepsRows());
STORES(StoreRowsOfSeveral, maker.stepsRows() && maker.several());
STORES(StoreRowsRefused, !maker.stepsRows());

constexpr std::size_t kRowLength = 3;
constexpr std::int64_t kRowCount = 400;  // which servers cut
constexpr std::size_t kTableCount = kRowLength * kRowCount;

Floats tableOf(std::size_t count) {
  Floats table(count);
  std::iota(table.begin(), table.end(), 1.F);
  return table;
}

/// Now and then none, a row twice, a row that all bring, and one of its own; in one round every
/// second row, and in one all of them.
RowNumbers rowsOf(int device, int round) {
  RowNumbers rows;
  if (round == 3 || round == 4) {
    for (std::int64_t row = 0; row < kRowCount; row += 5 - round) rows.push_back(row);
  } else if ((device + round) % 3 != 2) {
    rows = {7, device % 50, 399 - round, 7};
  }
  return rows;
}
constexpr int kRowRounds = 6;

Step pushOfRows(const AnyStore& store, KeyId key, int round) {
  Step step{push, key};
  step.inRows = store.own([&](int device) { return rowsOf(device, round); });
  step.in = store.own([&](int device) {
    // Sums differ by their order, which is that of the host where NCCL does not make them.
    Floats values = pushedBy(device, round, rowsOf(device, round).size() * kRowLength);
    for (float& one : values) one = std::sin(one);
    return values;
  });
  return step;
}

/// The same for the twin: of each worker its sum, as the worker itself makes it.
Step pushOfAllRows(const Twin& twin, const AnyStore& store, KeyId key, int round) {
  const Step all = pushOfRows(*twin, key, round);
  Step step{push, key};
  for (std::size_t from = 0; from < all.in.size(); from += store.devices()) {
    std::vector<SomeRows> parts;
    for (std::size_t i = from; i < from + store.devices(); ++i) {
      parts.push_back({all.in[i].data(), all.inRows[i]});
    }
    const SortedRows sum = sumRows(parts, kRowLength, Partial::none(DType::float32));
    const auto* const data = reinterpret_cast<const float*>(sum.data.data());
    step.in.emplace_back(data, data + sum.rows.size() * kRowLength);
    step.inRows.push_back(sum.rows);
  }
  return step;
}

TEST_P(StoreRowsPushed, AreOneStepOfTheirSum) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const Twin twin(store);
    const std::map<std::string, double> lazy{{"learningRate", 0.5}, {"momentum", 0.5}};
    const std::map<std::string, double> eager{{"momentum", 0.5}, {"lazyUpdate", 0}};
    const std::pair<const char*, std::map<std::string, double>> rules[] = {
        {"none", {}},    {"sgd", lazy}, {"sgd", eager}, {"adam", {}},
        {"adagrad", {}}, {"ftrl", {}},  {"lamb", {}},   {"groupadagrad", {}}};
    for (const auto& [rule, numbers] : rules) {
      const std::string name = rule + std::to_string(numbers.count("lazyUpdate"));
      std::shared_ptr<Optimizer> optimizers[2];
      if (rule != std::string("none")) {
        for (auto& one : optimizers) one = optimizerOf(rule, numbers);
        if (!store.maker.steps(*optimizers[0])) continue;
      }
      const KeyId key = store.define(name, tableOf(kTableCount), kRowLength);
      const KeyId there = twin->define(name, tableOf(kTableCount), kRowLength);
      store.store.setOptimizer(optimizers[0]);
      twin->store.setOptimizer(optimizers[1]);
      for (int round = 0; round < kRowRounds; ++round) {
        // A pull that comes with them, and one after them.
        std::vector<Floats> out = store.everywhere(Floats(kTableCount, -1));
        store.run({pushOfRows(store, key, round), {pull, key, {}, &out}});
        twin->run({pushOfAllRows(twin, store, there, round)});
        const Floats expected = twin.pulled(there, kTableCount);
        EXPECT_EQ(out, store.everywhere(expected)) << name << round;
        EXPECT_EQ(store.pulled(key, kTableCount), out) << name << round;
      }
    }
  });
}

TEST_P(StoreRowsPushed, OfManyKeysTravelBesideWholeArrays) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const Twin twin(store);
    constexpr std::size_t kKeys = 12;
    std::vector<KeyId> keys;
    for (std::size_t k = 0; k < kKeys; ++k) {
      keys.push_back(store.define(std::to_string(k), tableOf(kTableCount), kRowLength));
      twin->define(std::to_string(k), tableOf(kTableCount), kRowLength);
    }
    std::vector<Step> steps;
    for (std::size_t k = 0; k < kKeys; ++k) {
      const int round = static_cast<int>(k);
      const bool whole = k % 4 == 3;
      steps.push_back(whole ? Step{push, keys[k], ownOf(store, round, kTableCount)}
                            : pushOfRows(store, keys[k], round));
      twin->run({whole ? Step{push, keys[k], ownOf(*twin, round, kTableCount)}
                       : pushOfAllRows(twin, store, keys[k], round)});
    }
    if (store.rank == 1) std::reverse(steps.begin(), steps.end());
    store.run(std::move(steps));
    for (const KeyId key : keys) {
      const Floats expected = twin.pulled(key, kTableCount);
      EXPECT_EQ(store.pulled(key, kTableCount), store.everywhere(expected)) << key;
    }
  });
}

TEST_P(StoreRowsOfSeveral, AndWholeArraysOfOtherWorkersAreWhole) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const KeyId key = store.define("w", tableOf(kTableCount), kRowLength);
    const auto n = static_cast<float>(store.devices());
    for (int whole = 0; whole < store.maker.workers; ++whole) {
      Step step{push, key};
      if (store.rank == whole) {
        step.in = store.everywhere(Floats(kTableCount, 1));
      } else {
        step.in = store.everywhere(Floats(kRowLength, 10));
        step.inRows = store.everywhere(RowNumbers{4});
      }
      store.run({step});
      store.barrier();
      Floats expected(kTableCount, n);
      for (std::size_t i = 0; i < kRowLength; ++i) {
        expected[4 * kRowLength + i] += 10 * (store.arraysAsFloat() - n);
      }
      EXPECT_EQ(store.pulled(key, kTableCount), store.everywhere(expected)) << whole;
      store.barrier();
    }
  });
}

TEST_P(StoreRowsOfSeveral, OfAWorkerThatHasLeftAreNone) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const KeyId key = store.define("w", tableOf(kTableCount), kRowLength);
    const float left = store.arraysAsFloat() - static_cast<float>(store.devices());
    Floats expected(kTableCount);
    std::fill_n(expected.begin() + 8 * kRowLength, kRowLength, 2 * left);
    if (store.rank != 1) {
      Step step{push, key, store.everywhere(Floats(2 * kRowLength, 1))};
      step.inRows = store.everywhere(RowNumbers{8, 8});
      store.run({step, step});
      EXPECT_EQ(store.pulled(key, kTableCount), store.everywhere(expected));
    }
    store.wait(store.leave);
    store.barrier();
    EXPECT_EQ(store.pulled(key, kTableCount), store.everywhere(expected));
  });
}

TEST_P(StoreRowsPulled, ThatAreNotAskedForReadAsZero) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    // Rows of which servers have parts, also of one piece each, and several in one.
    for (const std::size_t row : {6, 30'000}) {
      Floats value = tableOf(10 * row);
      const KeyId key = store.define(std::to_string(row), value, row);
      std::vector<Floats> out = store.everywhere(Floats(value.size(), -1));
      store.run({{.kind = rowSparsePull,
                  .key = key,
                  .out = &out,
                  .rows = {7, 2, 3, 7},
                  .mixed = row == 6}});
      for (std::size_t i = 0; i < value.size(); ++i) {
        const std::size_t at = i / row;
        if (at != 7 && at != 2 && at != 3) value[i] = 0;
      }
      EXPECT_EQ(out, store.everywhere(value));
      // None at all.
      store.run({{.kind = rowSparsePull, .key = key, .out = &out}});
      EXPECT_EQ(out, store.everywhere(Floats(value.size())));
    }
  });
}

TEST_P(StoreRowsPulledAlone, AreSortedEachOnce) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const KeyId key = store.define("w", tableOf(kTableCount), kRowLength);
    std::vector<Floats> out = store.everywhere(Floats(3 * kRowLength, -1));
    store.run({{.kind = rowSparsePull,
                .key = key,
                .out = &out,
                .rows = {300, 2, 3, 300},
                .compact = true}});
    EXPECT_EQ(out, store.everywhere(Floats{7, 8, 9, 10, 11, 12, 901, 902, 903}));
  });
}

TEST_P(StoreRowsRefused, WhereAnOptimizersWorkIsShared) {
  onEveryStore(GetParam(), [](const AnyStore& store) {
    const KeyId key = store.define("w", tableOf(kTableCount), kRowLength);
    if (store.maker.readsRows()) {
      // Without an optimizer nothing is shared.
      store.run({pushOfRows(store, key, 3)});
      store.run({{push, key, {tableOf(kTableCount)}}});
    }
    store.store.setOptimizer(momentumOf(1));
    const std::vector<Floats> before = store.pulled(key, kTableCount);
    std::vector<Step> refused{pushOfRows(store, key, 0)};
    std::vector<Floats> out = store.everywhere(Floats(kTableCount));
    if (!store.maker.readsRows()) {
      refused.push_back({.kind = rowSparsePull, .key = key, .out = &out, .rows = {1}});
    }
    for (const Step& step : refused) {
      const std::string text = refusedBy(ErrorCode::unsupported, [&] { store.run({step}); });
      EXPECT_EQ(lacking(text, {"shardOptimizer", "of rows"}), "") << text;
    }
    EXPECT_EQ(store.pulled(key, kTableCount), before);
  });
}

}  // namespace
}  // namespace gradlink::test
