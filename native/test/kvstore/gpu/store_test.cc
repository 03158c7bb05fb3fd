// What stores on GPUs, of every kind, do beside what every store does (stores_test.cc).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, GpuStores, testing::ValuesIn(kStoreKinds), nameOfKind);

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

TEST_P(GpuStores, RefusesArraysOfOtherGpus) {
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
  Operation elsewhere = pushOf(key, arrays, ticket);
  elsewhere.inGpus[0] = 99;
  EXPECT_NE(refused(elsewhere).find("gpu:99"), std::string::npos);
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

/// Calls of the driver that queue something, of one push and pull of five keys that came before.
std::uint64_t callsOf(const char* optimizer) {
  const std::vector<int> gpus{0};
  GpuStoreOptions options;
  options.gpus = gpus;
  const auto store = makeGpuStore(options);
  std::vector<KeyId> keys;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    keys.push_back(defineWith(*store, name, Floats(1000, 1)));
  }
  OptimizerSpec spec;
  spec.name = optimizer;
  store->setOptimizer(Optimizer::create(spec));
  const GpuArrays grads(gpus, Floats(1000, 2));
  const GpuArrays outs(gpus, Floats(1000));
  const auto iterate = [&] {
    Waiter waiter;
    const auto ticket = waiter.ticket();
    std::vector<Operation> operations;
    for (const KeyId key : keys) {
      operations.push_back(pushOf(key, grads, ticket));
      operations.push_back(pullOf(key, outs, ticket));
    }
    store->submit(std::move(operations));
    waiter.wait();
  };
  for (int i = 0; i < 2; ++i) iterate();
  const std::uint64_t before = cuda::queuedOn(nullptr);
  iterate();
  return cuda::queuedOn(nullptr) - before;
}

TEST(GpuStoreCalls, AreAsManyForFiveKeysAsForOne) {
  if (!cuda::onFakes()) GTEST_SKIP() << "needs the stand-ins, which count what is queued";
  // The copy of the list, an event, a wait for it and the kernel; and the mark of the round's end.
  EXPECT_EQ(callsOf("sgd"), 5u);
  // Four kernels.
  EXPECT_EQ(callsOf("lamb"), 8u);
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
