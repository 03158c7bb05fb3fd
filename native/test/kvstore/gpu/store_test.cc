// What stores on GPUs do beside what every store does (conformance).
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

/// Calls of the driver that queue something, of one push and pull of five keys that came before.
std::uint64_t callsOf(const char* optimizer) {
  const std::vector<int> gpus{0};
  const auto store = makeGpuStore({.gpus = gpus});
  std::vector<KeyId> keys;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    keys.push_back(defineWith(*store, name, Floats(1000, 1)));
  }
  store->setOptimizer(optimizerOf(optimizer));
  const GpuArrays grads(gpus, Floats(1000, 2));
  const GpuArrays outs(gpus, Floats(1000));
  const auto iterate = [&] {
    waitFor([&](const auto& ticket) {
      std::vector<Operation> operations;
      for (const KeyId key : keys) {
        operations.push_back(pushOf(key, grads, ticket));
        operations.push_back(pullOf(key, outs, ticket));
      }
      store->submit(std::move(operations));
    });
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

TEST(GpuStoreCalls, LeaveTheThreadItsContext) {
  cuda::Device& own = cuda::Device::get(0);
  own.makeCurrent();
  {
    const auto store = makeGpuStore({.gpus = {0, cuda::Device::count() - 1}});
    defineWith(*store, "w", Floats(10, 1));
  }
  cuda::ContextHandle current = nullptr;
  cuda::check(cuda::Driver::get().getCurrent(&current), "asking");
  EXPECT_EQ(current, own.context());
}

TEST(GpuStoreOptions, NcclWantsEachGpuOnce) {
  GpuStoreOptions options{.gpus = {0, 0}, .merge = GpuMerge::nccl};
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
