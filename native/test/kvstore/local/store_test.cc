// What the store engine computes. What JavaScript sees is tested in test/kvstore.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "kvstore/local/store.h"
#include "test/kvstore/support.h"

namespace gradlink::test {
namespace {

TEST(LocalStore, AssignsTheSumOfEachPush) {
  LocalStore store(Placement::devices, 4);
  const KeyId key = makeKey(store, "a", Floats(100, 7));
  std::vector<Floats> pushed(4, Floats(100, 1));
  std::vector<Floats> pulled(4, Floats(100));
  for (const bool here : {false, true}) {
    pushed[0].assign(100, here ? 3.0f : 1.0f);
    run(store, OperationKind::push, key, pushed, here);
    run(store, OperationKind::pull, key, pulled, here);
    for (const Floats& array : pulled) EXPECT_EQ(array, Floats(100, here ? 6 : 4));
  }
}

TEST(LocalStore, SumsInDeviceOrderAtEverySize) {
  LocalStore store(Placement::host, 3);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1e6f, 1e6f);
  int name = 0;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097}, std::size_t{300'001}}) {
    std::vector<Floats> pushed(3, Floats(count));
    Floats expected(count);
    for (Floats& array : pushed) {
      for (float& x : array) x = uniform(random);
    }
    for (std::size_t i = 0; i < count; ++i) {
      expected[i] = (pushed[0][i] + pushed[1][i]) + pushed[2][i];
    }
    const KeyId key = makeKey(store, std::to_string(name++), Floats(count));
    // Both ways: a pull that rides along with its push, and one that comes after.
    std::vector<Floats> riding(2, Floats(count, -1));
    std::vector<Floats> later(1, Floats(count, -1));
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> both;
    both.push_back(operation(OperationKind::push, key, pushed, ticket));
    both.push_back(operation(OperationKind::pull, key, riding, ticket));
    store.submit(std::move(both));
    waiter.wait();
    run(store, OperationKind::pull, key, later);
    EXPECT_EQ(riding[0], expected) << count;
    EXPECT_EQ(riding[1], expected) << count;
    EXPECT_EQ(later[0], expected) << count;
  }
}

TEST(LocalStore, RefusesWhatDoesNotFit) {
  LocalStore store(Placement::host, 1);
  std::vector<Floats> one(1, Floats(4, 1));
  EXPECT_THROW(store.define("a", DType::float32, 4, 3), Error);
  const KeyId key = makeKey(store, "a", Floats(4));
  EXPECT_THROW(store.define("a", DType::float32, 4, 1), Error);
  EXPECT_THROW(store.setCompression(GradientCompression(CompressionType::twoBit, 0.5)), Error);
  const auto ignored = std::make_shared<Ticket>([](std::exception_ptr) {});
  EXPECT_THROW(submitOne(store, operation(OperationKind::push, key + 1, one, ignored)), Error);
  std::vector<Floats> none;
  EXPECT_THROW(submitOne(store, operation(OperationKind::push, key, none, ignored)), Error);
}

TEST(LocalStore, ReadsRowsInAnyOrder) {
  LocalStore store(Placement::host, 1);
  const KeyId key = store.define("a", DType::float32, 6, 2);
  std::vector<Floats> value{{1, 2, 3, 4, 5, 6}};
  run(store, OperationKind::init, key, value);
  Floats out(6, 9);
  Waiter waiter;
  Operation rows;
  rows.kind = OperationKind::rowSparsePull;
  rows.key = key;
  rows.out = {out.data()};
  rows.rows = {2, 0, 2};
  rows.ticket = waiter.ticket();
  submitOne(store, std::move(rows));
  waiter.wait();
  EXPECT_EQ(out, (Floats{1, 2, 0, 0, 5, 6}));
}

}  // namespace
}  // namespace gradlink::test
