// Arrays in memory that servers read where it lies: which of them are copied all the same.
#include <numeric>

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
  Operation made{
      .kind = OperationKind::push, .key = key, .in = {in.data()}, .ticket = std::move(ticket)};
  return made;
}

void push(Store& store, KeyId key, const SharedFloats& in) {
  waitFor([&](auto ticket) { submitOne(store, pushOf(key, in, ticket)); });
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
