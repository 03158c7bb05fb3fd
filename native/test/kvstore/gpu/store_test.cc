// What stores on GPUs compute, of every kind, against the store of CPU devices.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, GpuStores, testing::ValuesIn(kStoreKinds), nameOfKind);

TEST_P(GpuStores, AssignsTheSumOfEachPushAtEverySize) {
  const auto store = open();
  std::mt19937 random(7);
  std::vector<KeyId> keys;
  // Small ones that are packed, one that is not, and none at all.
  for (const std::size_t count : {0, 1, 3, 63, 4097, 40'000}) {
    const KeyId key = defineWith(*store, "k" + std::to_string(count), Floats(count, 5));
    GpuArrays first(gpus, Floats(count, -1));
    pull(*store, key, first);
    EXPECT_EQ(first.read(), std::vector<Floats>(gpus.size(), Floats(count, 5))) << count;

    Floats sum(count);
    std::vector<Floats> values;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      values.push_back(wholeFloats(random, count));
      for (std::size_t j = 0; j < count; ++j) sum[j] += values.back()[j];
    }
    const GpuArrays pushed(gpus, values);
    const GpuArrays riding(gpus, Floats(count, -1));
    const GpuArrays later(gpus, Floats(count, -1));
    // Both ways: a pull that rides along with its push, and one that comes after.
    runAll(
        *store, [&](const auto& ticket) { return pushOf(key, pushed, ticket); },
        [&](const auto& ticket) { return pullOf(key, riding, ticket); });
    pull(*store, key, later);
    push(*store, key, pushed);
    const GpuArrays again(gpus, Floats(count, -1));
    pull(*store, key, again);
    const std::vector<Floats> expected(gpus.size(), sum);
    EXPECT_EQ(riding.read(), expected) << count;
    EXPECT_EQ(later.read(), expected) << count;
    EXPECT_EQ(again.read(), expected) << count;
    EXPECT_EQ(pushed.read(), values) << count;
  }
}

TEST_P(GpuStores, ManyKeysInOneSubmissionKeepApart) {
  const auto store = open();
  constexpr int kKeys = 60;
  std::vector<KeyId> keys;
  std::vector<GpuArrays> pushed;
  std::vector<GpuArrays> pulled;
  for (int k = 0; k < kKeys; ++k) {
    const std::size_t count = 10 + static_cast<std::size_t>(k % 7) * 3000;
    keys.push_back(defineWith(*store, std::to_string(k), Floats(count)));
    std::vector<Floats> values;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      values.emplace_back(count, static_cast<float>(k) + 100 * static_cast<float>(i));
    }
    pushed.emplace_back(gpus, values);
    pulled.emplace_back(gpus, Floats(count, -1));
  }
  Waiter waiter;
  const auto ticket = waiter.ticket();
  std::vector<Operation> operations;
  for (int k = 0; k < kKeys; ++k) {
    operations.push_back(pushOf(keys[k], pushed[k], ticket));
    operations.back().priority = k;
  }
  for (int k = 0; k < kKeys; ++k) operations.push_back(pullOf(keys[k], pulled[k], ticket));
  store->submit(std::move(operations));
  waiter.wait();
  for (int k = 0; k < kKeys; ++k) {
    float sum = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      sum += static_cast<float>(k) + 100 * static_cast<float>(i);
    }
    for (const Floats& array : pulled[k].read()) {
      EXPECT_EQ(array, Floats(array.size(), sum)) << k;
    }
  }
}

TEST_P(GpuStores, OperationsOnOneKeyKeepTheirOrder) {
  const auto store = open();
  const KeyId key = defineWith(*store, "a", Floats(1000, 0));
  std::vector<GpuArrays> pushed;
  std::vector<GpuArrays> pulled;
  for (int i = 0; i < 20; ++i) {
    pushed.emplace_back(gpus, Floats(1000, static_cast<float>(i + 1)));
    pulled.emplace_back(gpus, Floats(1000, -1));
  }
  std::vector<Waiter> waiters(20);
  for (int i = 0; i < 20; ++i) {
    const auto ticket = waiters[i].ticket();
    std::vector<Operation> operations;
    operations.push_back(pushOf(key, pushed[i], ticket));
    operations.back().priority = -i;
    operations.push_back(pullOf(key, pulled[i], ticket));
    operations.back().priority = i;
    store->submit(std::move(operations));
  }
  for (Waiter& waiter : waiters) waiter.wait();
  for (int i = 0; i < 20; ++i) {
    const float sum = static_cast<float>(i + 1) * static_cast<float>(gpus.size());
    EXPECT_EQ(pulled[i].read(), std::vector<Floats>(gpus.size(), Floats(1000, sum))) << i;
  }
}

TEST_P(GpuStores, ArraysOfSomeDevicesOnly) {
  const auto store = open();
  const KeyId key = defineWith(*store, "a", Floats(500, 0));
  const std::vector<int> last{gpus.back()};
  const GpuArrays pushed(last, Floats(500, 3));
  push(*store, key, pushed);
  const GpuArrays one(last, Floats(500, -1));
  pull(*store, key, one);
  EXPECT_EQ(one.read()[0], Floats(500, 3));
  // More than one a device, as where a list names a key twice.
  std::vector<int> twice = gpus;
  twice.insert(twice.end(), gpus.begin(), gpus.end());
  const GpuArrays many(twice, Floats(500, 1));
  const GpuArrays outs(twice, Floats(500, -1));
  push(*store, key, many);
  pull(*store, key, outs);
  for (const Floats& array : outs.read()) {
    EXPECT_EQ(array, Floats(500, 2 * static_cast<float>(gpus.size())));
  }
}

TEST_P(GpuStores, PushPullInPlace) {
  const auto store = open();
  for (const std::size_t count : {std::size_t{100}, std::size_t{50'000}}) {
    const KeyId key = defineWith(*store, std::to_string(count), Floats(count, 0));
    const GpuArrays arrays(gpus, Floats(count, 2));
    runAll(*store, [&](const auto& ticket) {
      Operation both = pushOf(key, arrays, ticket);
      both.kind = OperationKind::pushPull;
      both.out = arrays.out();
      both.outGpus = arrays.gpus();
      return both;
    });
    const Floats expected(count, 2 * static_cast<float>(gpus.size()));
    EXPECT_EQ(arrays.read(), std::vector<Floats>(gpus.size(), expected));
  }
}

TEST_P(GpuStores, RowsOfTheValueAndZeros) {
  const auto store = open();
  Floats value(60);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i + 1);
  const KeyId key = defineWith(*store, "a", value, 6);
  for (const int gpu : std::set<int>(gpus.begin(), gpus.end())) {
    const GpuArrays out(std::vector<int>{gpu}, Floats(60, -1));
    runAll(*store, [&](const auto& ticket) {
      Operation rows = pullOf(key, out, ticket);
      rows.kind = OperationKind::rowSparsePull;
      rows.rows = {7, 2, 3, 7};
      return rows;
    });
    Floats expected(60, 0);
    for (const std::size_t row : {2, 3, 7}) {
      std::copy_n(value.begin() + static_cast<long>(row * 6), 6,
                  expected.begin() + static_cast<long>(row * 6));
    }
    EXPECT_EQ(out.read()[0], expected) << gpu;
  }
}

TEST_P(GpuStores, OtherElementTypes) {
  const auto store = open();
  const KeyId key = store->define("a", DType::int32, 1000, 1);
  const std::vector<std::int32_t> zeros(1000);
  std::vector<GpuBytes> arrays;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::vector<std::int32_t> value(1000, static_cast<std::int32_t>(i) + 1'000'000'000);
    arrays.emplace_back(gpus[i], value.data(), 4000);
  }
  GpuBytes out(gpus[0], zeros.data(), 4000);
  Waiter waiter;
  const auto ticket = waiter.ticket();
  Operation init;
  init.kind = OperationKind::init;
  init.key = key;
  init.in = {arrays[0].data()};  // From a GPU this time.
  init.inGpus = {gpus[0]};
  init.ticket = ticket;
  Operation push;
  push.key = key;
  std::uint32_t expected = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    push.in.push_back(arrays[i].data());
    expected += static_cast<std::uint32_t>(i) + 1'000'000'000;
  }
  push.ticket = ticket;
  Operation pull;
  pull.kind = OperationKind::pull;
  pull.key = key;
  pull.out = {out.data()};
  pull.ticket = ticket;
  store->submit({init, push, pull});
  waiter.wait();
  std::vector<std::uint32_t> got(1000);
  out.read(got.data());
  EXPECT_EQ(got, std::vector<std::uint32_t>(1000, expected));
}

TEST_P(GpuStores, RefusesWhatDoesNotFit) {
  const auto store = open();
  const KeyId key = defineWith(*store, "a", Floats(10));
  const GpuArrays arrays(gpus, Floats(10));
  const auto ticket = Waiter().ticket();
  const auto refused = [&](Operation wrong) {
    std::vector<Operation> operations;
    operations.push_back(std::move(wrong));
    return cuda::messageOf(ErrorCode::invalidArgument,
                           [&] { store->submit(std::move(operations)); });
  };
  Operation unknown = pushOf(7, arrays, ticket);
  EXPECT_NE(refused(unknown).find("such key"), std::string::npos);
  Operation elsewhere = pushOf(key, arrays, ticket);
  elsewhere.inGpus[0] = 99;
  EXPECT_NE(refused(elsewhere).find("gpu:99"), std::string::npos);
  cuda::messageOf(ErrorCode::invalidArgument, [&] { store->define("a", DType::float32, 1, 1); });
  cuda::messageOf(ErrorCode::invalidArgument, [&] { store->define("b", DType::float32, 10, 3); });
}

TEST_P(GpuStores, IntegersHaveNoOptimizer) {
  const auto store = open();
  store->setOptimizer(Optimizer::create({"sgd", {}, {}, {}, {}, {}}));
  const KeyId key = store->define("a", DType::int32, 10, 1);
  const GpuArrays arrays(gpus, Floats(10));
  const std::string text =
      cuda::messageOf(ErrorCode::invalidArgument, [&] { push(*store, key, arrays); });
  EXPECT_EQ(lacking(text, {"key a", "int32"}), "") << text;
}

TEST_P(GpuStores, StoppedWithWorkUnderWay) {
  const auto store = open();
  const KeyId key = defineWith(*store, "a", Floats(100'000));
  const GpuArrays arrays(gpus, Floats(100'000, 1));
  for (int i = 0; i < 50; ++i) {
    // Never looked at: what is queued is dropped.
    const auto ticket = std::make_shared<Ticket>([](std::exception_ptr) {});
    std::vector<Operation> operations;
    operations.push_back(pushOf(key, arrays, ticket));
    store->submit(std::move(operations));
  }
  store->stop();
  store->stop();
}

TEST(GpuStoreOptions, NcclWantsEachGpuOnce) {
  GpuStoreOptions options;
  options.gpus = {0, 0};
  options.merge = GpuMerge::nccl;
  const std::string text = cuda::messageOf(ErrorCode::unsupported, [&] { makeGpuStore(options); });
  EXPECT_EQ(lacking(text, {"NCCL", "once"}), "") << text;
  options.gpus = {};
  cuda::messageOf(ErrorCode::invalidArgument, [&] { makeGpuStore(options); });
  options.gpus = {cuda::Device::count()};
  options.merge = GpuMerge::automatic;
  cuda::messageOf(ErrorCode::invalidArgument, [&] { makeGpuStore(options); });
}

}  // namespace
}  // namespace gradlink::test
