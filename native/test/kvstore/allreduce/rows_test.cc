// Pushes of rows alone to the store without servers, beside one store that gets them all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/local/local_store.h"
#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

using RowNumbers = std::vector<std::int64_t>;

constexpr std::size_t kTableRowLength = 3;
constexpr std::size_t kTableRows = 50;
constexpr std::size_t kTableCount = kTableRowLength * kTableRows;

struct Brought {
  RowNumbers rows;
  Floats data;
};

/// What a device of a worker brings to a step: now and then nothing, a row twice, a row that all
/// bring, and one of its own.
Brought broughtBy(int device, int step) {
  Brought made;
  if ((device + step) % 3 != 2) made.rows = {7, device % 50, 49 - step, 7};
  for (std::size_t i = 0; i < made.rows.size() * kTableRowLength; ++i) {
    made.data.push_back(std::sin(static_cast<float>(i) + 0.7F * static_cast<float>(device + step)));
  }
  return made;
}

Operation pushOfBrought(KeyId key, std::vector<Brought>& brought, std::shared_ptr<Ticket> ticket) {
  Operation made;
  made.kind = OperationKind::push;
  made.key = key;
  made.ticket = std::move(ticket);
  for (Brought& one : brought) {
    made.in.push_back(one.data.data());
    made.inRows.push_back(one.rows);
  }
  return made;
}

void pushBrought(Store& store, KeyId key, std::vector<Brought> brought) {
  Waiter waiter;
  submitOne(store, pushOfBrought(key, brought, waiter.ticket()));
  waiter.wait();
}

KeyId makeTable(Store& store, const std::string& name, std::size_t rowLength = kTableRowLength) {
  const KeyId key = store.define(name, DType::float32, kTableCount, rowLength);
  std::vector<Floats> values{Floats(kTableCount)};
  std::iota(values.front().begin(), values.front().end(), 1.F);
  run(store, OperationKind::init, key, values);
  return key;
}

Floats tablePulled(Store& store, KeyId key) {
  std::vector<Floats> out{Floats(kTableCount, -1.F)};
  run(store, OperationKind::pull, key, out);
  return out.front();
}

std::shared_ptr<Optimizer> momentumOfRows() {
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.numbers["learningRate"] = 0.1;
  spec.numbers["momentum"] = 0.9;
  return Optimizer::create(spec);
}

void onRowWorkers(int workers, const std::function<void(Store&, int)>& worker,
                  AllreduceStoreOptions options = {}) {
  options.timeoutMs = 20000;
  expectNone(onRanksTaken(workers, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store = makeAllreduceStore(std::move(comm), options);
    worker(*store, rank);
    store->stop();
  }));
}

TEST(KvstoreAllreduceRows, AreStepsOfOneStoreThatGetsThemAll) {
  constexpr int kSteps = 4;
  for (const bool steps : {false, true}) {
    for (const int workers : {1, 2, 3, 4, 7}) {
      LocalStore alone(Placement::devices, static_cast<std::size_t>(workers));
      const KeyId there = makeTable(alone, "w");
      if (steps) alone.setOptimizer(momentumOfRows());
      for (int step = 0; step < kSteps; ++step) {
        std::vector<Brought> all;
        for (int rank = 0; rank < workers; ++rank) {
          // Of each worker its sum, as the worker itself makes it.
          Brought one = broughtBy(rank, step);
          const SomeRows part{one.data.data(), one.rows};
          const SortedRows sum = sumRows({&part, 1}, kTableRowLength, DType::float32);
          const auto* const data = static_cast<const float*>(sum.data.data());
          all.push_back({sum.rows, Floats(data, data + sum.rows.size() * kTableRowLength)});
        }
        pushBrought(alone, there, std::move(all));
      }
      const Floats expected = tablePulled(alone, there);
      onRowWorkers(workers, [&](Store& store, int rank) {
        const KeyId key = makeTable(store, "w");
        if (steps) store.setOptimizer(momentumOfRows());
        for (int step = 0; step < kSteps; ++step) pushBrought(store, key, {broughtBy(rank, step)});
        EXPECT_EQ(tablePulled(store, key), expected);
      });
    }
  }
}

TEST(KvstoreAllreduceRows, OfSomeWorkersAndWholeArraysOfOthersAreWhole) {
  onRowWorkers(3, [](Store& store, int rank) {
    const KeyId key = makeTable(store, "w");
    for (const int whole : {0, 1, 2}) {
      std::vector<Floats> all{Floats(kTableCount, 1)};
      if (rank == whole) {
        run(store, OperationKind::push, key, all);
      } else {
        pushBrought(store, key, {{{4}, Floats(kTableRowLength, 10)}});
      }
      Floats expected(kTableCount, 1);
      for (std::size_t i = 0; i < kTableRowLength; ++i) expected[4 * kTableRowLength + i] = 21;
      EXPECT_EQ(tablePulled(store, key), expected);
    }
  });
}

TEST(KvstoreAllreduceRows, OfManyKeysTravelTogetherInAnyOrder) {
  constexpr int kKeys = 12;
  for (const std::size_t fuse : {std::size_t{1}, std::size_t{200}, std::size_t{1} << 20}) {
    AllreduceStoreOptions options;
    options.fuseBytes = fuse;
    onRowWorkers(
        2,
        [&](Store& store, int rank) {
          std::vector<KeyId> keys;
          for (int i = 0; i < kKeys; ++i) keys.push_back(makeTable(store, std::to_string(i)));
          std::vector<std::vector<Brought>> brought(kKeys);
          std::vector<Waiter> waiters(kKeys);
          std::vector<Floats> dense{Floats(kTableCount, 2)};
          for (int i = 0; i < kKeys; ++i) {
            const auto at = static_cast<std::size_t>(rank == 0 ? i : kKeys - 1 - i);
            // Keys of rows, others whole, side by side; no rows at all of the first.
            if (at % 4 == 3) {
              submitOne(store,
                        operation(OperationKind::push, keys[at], dense, waiters[at].ticket()));
              continue;
            }
            const auto last = static_cast<std::int64_t>(at);
            RowNumbers rows(at);
            std::iota(rows.begin(), rows.end(), 1);
            if (rank == 1) rows.push_back(last + 1);
            const std::size_t length = rows.size() * kTableRowLength;
            brought[at] = {{std::move(rows), Floats(length, static_cast<float>(at) + 1)}};
            submitOne(store, pushOfBrought(keys[at], brought[at], waiters[at].ticket()));
          }
          for (Waiter& waiter : waiters) waiter.wait();
          for (std::size_t at = 0; at < kKeys; ++at) {
            Floats expected(kTableCount, at % 4 == 3 ? 4.F : 0.F);
            for (std::size_t row = 1; at % 4 != 3 && row <= at + 1; ++row) {
              const float value = static_cast<float>(at + 1) * (row <= at ? 2 : 1);
              std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(row * kTableRowLength),
                          kTableRowLength, value);
            }
            EXPECT_EQ(tablePulled(store, keys[at]), expected) << at;
          }
        },
        options);
  }
}

TEST(KvstoreAllreduceRows, OfAWorkerThatHasLeftAreNone) {
  onRowWorkers(3, [](Store& store, int rank) {
    const KeyId key = makeTable(store, "w");
    if (rank != 1) {
      for (int step = 0; step < 3; ++step) pushBrought(store, key, {{{8, 8}, Floats(6, 1)}});
    }
    Waiter left;
    store.leave(left.ticket());
    left.wait();
    Waiter all;
    store.barrier(all.ticket());
    all.wait();
    EXPECT_EQ(tablePulled(store, key)[8 * kTableRowLength], 4);
    EXPECT_EQ(tablePulled(store, key)[0], 0);
  });
}

TEST(KvstoreAllreduceRows, AreAllThatTravels) {
  onRowWorkers(2, [](Store& store, int /*rank*/) {
    const KeyId key = makeTable(store, "w");
    const std::uint64_t before = store.report().sums->bytesReduced;
    pushBrought(store, key, {{{8, 3, 8}, Floats(9, 1)}});
    // Two rows of 12 bytes and their numbers, at a cache line.
    EXPECT_EQ(store.report().sums->bytesReduced - before, 64U);
    pushBrought(store, key, {{{}, {}}});
    EXPECT_EQ(store.report().sums->bytesReduced - before, 64U);
    EXPECT_EQ(tablePulled(store, key), Floats(kTableCount, 0));
  });
}

TEST(KvstoreAllreduceRows, OfOtherLengthsAreAMismatchOnAll) {
  const auto errors = onRanksTaken(2, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto store = makeAllreduceStore(std::move(comm), {.timeoutMs = 20000});
    makeTable(*store, "w", rank == 0 ? 3 : 5);
    store->stop();
  });
  expectAll(errors, ErrorCode::mismatch);
  EXPECT_EQ(lacking(errors[0]->what(), {"float32", "rows of 5"}), "") << errors[0]->what();
}

}  // namespace
}  // namespace gradlink::test
