// Arrays in memory that servers read where it lies: the same bits, the caller's again when the push
// is done, and nothing kept waiting by other workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>

#include "test/kvstore/worker/support.h"

namespace gradlink::test {
namespace {

/// Floats in memory of the store.
class SharedFloats {
 public:
  SharedFloats(Store& store, std::size_t count)
      : store_(store),
        data_(static_cast<float*>(store.allocShared(count * sizeof(float)))),
        count_(count) {}
  ~SharedFloats() { store_.freeShared(data_); }
  SharedFloats(const SharedFloats&) = delete;
  SharedFloats& operator=(const SharedFloats&) = delete;

  float* data() const { return data_; }
  void fill(float from) const { std::iota(data_, data_ + count_, from); }
  Floats copy() const { return {data_, data_ + count_}; }

 private:
  Store& store_;
  float* data_;
  std::size_t count_;
};

Operation pushOf(KeyId key, const SharedFloats& in, std::shared_ptr<Ticket> ticket) {
  Operation made;
  made.kind = OperationKind::push;
  made.key = key;
  made.in = {in.data()};
  made.ticket = std::move(ticket);
  return made;
}

void push(Store& store, KeyId key, const SharedFloats& in) {
  Waiter waiter;
  submitOne(store, pushOf(key, in, waiter.ticket()));
  waiter.wait();
}

void pull(Store& store, KeyId key, const SharedFloats& out) {
  Waiter waiter;
  Operation made = pushOf(key, out, waiter.ticket());
  made.kind = OperationKind::pull;
  made.out = {out.data()};
  made.in.clear();
  submitOne(store, std::move(made));
  waiter.wait();
}

using SharedShape = std::tuple<int, int, bool>;  // workers, servers, with an optimizer

class SharedArrays : public testing::TestWithParam<SharedShape> {};

TEST_P(SharedArrays, GiveTheBitsOfPlainOnesAndMayBeWrittenAfterThePush) {
  const auto [workers, servers, optimizes] = GetParam();
  DistJob job;
  job.workers = workers;
  job.servers = servers;
  job.bigArrayBound = 500;
  job.mostStagedBytes = 1 << 20;
  const bool steps = optimizes;
  expectNone(runDist(job, [steps](Store& store, int rank) {
    // Staged, staged because it is alone, of a few pieces, of more than the window takes.
    for (const std::size_t count : {1'000UL, 20'000UL, 150'001UL, 1'100'003UL}) {
      const KeyId shared = makeKey(store, "shared" + std::to_string(count), Floats(count));
      const KeyId plain = makeKey(store, "plain" + std::to_string(count), Floats(count));
      if (steps) store.setOptimizer(Optimizer::create(specOf("adam")));
      const SharedFloats in(store, count);
      const SharedFloats out(store, count);
      std::vector<Floats> got{Floats(count)};
      for (int round = 0; round < 3; ++round) {
        in.fill(static_cast<float>(1 + rank + 3 * round));
        std::vector<Floats> same{in.copy()};
        run(store, OperationKind::push, plain, same);
        push(store, shared, in);
        std::fill_n(in.data(), count, -1.0F);
        run(store, OperationKind::pull, plain, got);
        pull(store, shared, out);
        EXPECT_EQ(out.copy(), got[0]) << count << " in round " << round;
      }
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedArrays,
                         testing::Combine(testing::Values(1, 3), testing::Values(1, 2),
                                          testing::Bool()));

DistJob twoWorkers() {
  DistJob job;
  job.workers = 2;
  return job;
}

TEST(SharedArray, APushAndItsPullMayUseTheSameArray) {
  expectNone(runDist(twoWorkers(), [](Store& store, int rank) {
    constexpr std::size_t kCount = 700'001;
    const KeyId key = makeKey(store, "k", Floats(kCount));
    const SharedFloats both(store, kCount);
    std::fill_n(both.data(), kCount, static_cast<float>(rank + 1));
    Waiter waiter;
    Operation made = pushOf(key, both, waiter.ticket());
    made.kind = OperationKind::pushPull;
    made.out = {both.data()};
    submitOne(store, std::move(made));
    waiter.wait();
    EXPECT_EQ(both.copy(), Floats(kCount, 3));
  }));
}

TEST(SharedArray, APushIsDoneThoughNoOtherWorkerHasPushed) {
  expectNone(runDist(twoWorkers(), [](Store& store, int rank) {
    constexpr std::size_t kCount = 300'000;
    const KeyId key = makeKey(store, "k", Floats(kCount));
    const SharedFloats in(store, kCount);
    std::fill_n(in.data(), kCount, 1.0F);
    // Worker 1 pushes when worker 0's push is done: the barrier is between them.
    if (rank == 0) push(store, key, in);
    meet(store);
    if (rank == 1) push(store, key, in);
    meet(store);
    std::vector<Floats> out{Floats(kCount)};
    run(store, OperationKind::pull, key, out);
    EXPECT_EQ(out[0], Floats(kCount, 2));
  }));
}

TEST(SharedArray, BytesAreNotCopiedByTheWorker) {
  expectNone(runDist(DistJob{}, [](Store& store, int) {
    constexpr std::size_t kCount = 4 << 20;
    const KeyId key = makeKey(store, "k", Floats(kCount));
    const SharedFloats in(store, kCount);
    meet(store);  // the times of what was done before are told by then
    const double before = store.report().copy;
    push(store, key, in);
    meet(store);
    EXPECT_EQ(store.report().copy, before);
  }));
}

TEST(SharedArray, ShortOnesAreCopiedAloneAndReadWhereTheyLieAmongOthers) {
  expectNone(runDist(DistJob{}, [](Store& store, int) {
    constexpr std::size_t kCount = 50'000;
    const KeyId keys[] = {makeKey(store, "a", Floats(kCount)), makeKey(store, "b", Floats(kCount))};
    const SharedFloats in(store, kCount);
    const SharedFloats other(store, kCount);
    const SharedFloats out(store, kCount);
    in.fill(1);
    other.fill(2);
    const auto copiedBy = [&](const std::function<void()>& pushes) {
      meet(store);  // the times of what was done before are told by then
      const double before = store.report().copy;
      pushes();
      meet(store);
      return store.report().copy - before;
    };
    // What was staged before is on its way until the worker has looked.
    double alone = 0;
    for (int i = 0; i < 100 && alone == 0; ++i) {
      alone = copiedBy([&] { push(store, keys[0], in); });
      pull(store, keys[0], out);
      EXPECT_EQ(out.copy(), in.copy());
    }
    EXPECT_GT(alone, 0);
    Waiter both;
    const auto ticket = both.ticket();
    EXPECT_EQ(copiedBy([&] {
                store.submit({pushOf(keys[0], other, ticket), pushOf(keys[1], in, ticket)});
                both.wait();
              }),
              0);
    pull(store, keys[1], out);
    EXPECT_EQ(out.copy(), in.copy());
    pull(store, keys[0], out);
    EXPECT_EQ(out.copy(), other.copy());
  }));
}

}  // namespace
}  // namespace gradlink::test
