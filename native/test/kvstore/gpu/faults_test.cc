// What goes wrong below a store on GPUs: it ends as an error, soon, and leaves nothing. The
// stand-ins make it go wrong; each case is a process of its own.
#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kFaultCount = 50'000;

using GpuStoreFaults = cuda::FreshFakes;

/// What it failed with: "ERR_... message", or "".
std::string outcomeOf(const std::function<void()>& body) {
  const auto error = errorOf(body);
  return error ? std::string(nameOf(error->code)) + " " + error->what() : "";
}

/// A push of ones.
std::string outcome(Store& store, KeyId key, const GpuArrays& arrays) {
  return outcomeOf([&] { push(store, key, arrays); });
}

/// Runs `body` with these faults in a process of its own, which must leave nothing on the fakes.
/// `limitMs`: of the store.
void withFaults(const std::string& faults, GpuMerge merge, const std::vector<int>& gpus,
                double limitMs, const std::function<void(Store&, const std::vector<int>&)>& body) {
  EXPECT_EQ(cuda::leftBy({{"GRADLINK_FAKE_FAULTS", faults}, {"GRADLINK_FAKE_GPUS", "4"}},
                         [&] {
                           const auto store =
                               makeGpuStore({.gpus = gpus, .merge = merge, .timeoutMs = limitMs});
                           body(*store, gpus);
                         }),
            "");
}

/// `body` gets what pushes ones to a key, and says what became of it.
void pushingWith(const std::string& faults, GpuMerge merge, const std::vector<int>& gpus,
                 double limitMs,
                 const std::function<void(const std::function<std::string()>&)>& body) {
  withFaults(faults, merge, gpus, limitMs, [&](Store& store, const std::vector<int>&) {
    const KeyId key = defineWith(store, "a", Floats(kFaultCount));
    const GpuArrays arrays(gpus, Floats(kFaultCount, 1));
    body([&] { return outcome(store, key, arrays); });
  });
}

TEST_F(GpuStoreFaults, NcclFailsOnTheWay) {
  pushingWith("nccl-async=2@1", GpuMerge::nccl, {0, 1, 2}, 20'000, [](const auto& pushed) {
    EXPECT_EQ(pushed(), "");
    EXPECT_EQ(lacking(pushed(), {"ERR_SYSTEM", "system error"}), "");
    // The communicator is gone, and says so.
    EXPECT_NE(pushed(), "");
  });
}

TEST_F(GpuStoreFaults, ARankThatIsStuckIsATimeout) {
  // Enough for the opening and the first push.
  pushingWith("nccl-stuck=2@2", GpuMerge::automatic, {0, 1, 2}, 2000, [](const auto& pushed) {
    EXPECT_EQ(pushed(), "");
    EXPECT_EQ(pushed().find("ERR_TIMEOUT"), 0u);
  });
}

TEST_F(GpuStoreFaults, ARankThatNeverJoinsEndsTheOpening) {
  withFaults("nccl-never=1", GpuMerge::nccl, {0, 1}, 200,
             [](Store& store, const std::vector<int>& gpus) {
               EXPECT_EQ(outcomeOf([&] { meet(store); }).find("ERR_TIMEOUT"), 0u);
               // So it stays.
               const KeyId key = store.define("a", DType::float32, 4, 1);
               const GpuArrays arrays(gpus, Floats(4, 1));
               EXPECT_EQ(outcome(store, key, arrays).find("ERR_TIMEOUT"), 0u);
             });
}

TEST_F(GpuStoreFaults, AnOpeningThatIsStopped) {
  withFaults("nccl-never=1", GpuMerge::nccl, {0, 1}, 1e9,
             [](Store& store, const std::vector<int>&) {
               store.barrier(std::make_shared<Ticket>([](std::exception_ptr) {}));
               store.stop();
             });
}

/// Values and what a round needs on its way fit or do not: the store goes on with what does.
void runOutOfMemory(Store& store, const std::vector<int>& gpus) {
  cuda::messageOf(ErrorCode::outOfMemory,
                  [&] { store.define("huge", DType::float32, 1 << 26, 1); });
  // No room for its three states beside value and gradient, nor for half of them on each GPU.
  store.setOptimizer(optimizerOf("rmsprop", {{"centered", 1}}));
  const KeyId key = defineWith(store, "a", Floats(3'500'000));
  const GpuArrays arrays(gpus, Floats(3'500'000, 1));
  EXPECT_EQ(outcome(store, key, arrays).find("ERR_OUT_OF_MEMORY"), 0u);
  store.setOptimizer(nullptr);
  EXPECT_EQ(outcome(store, key, arrays), "");
}

TEST_F(GpuStoreFaults, MemoryRunsOut) {
  for (const GpuMerge merge : {GpuMerge::peer, GpuMerge::nccl}) {
    withFaults("oom=40000000", merge, {0, 1}, 20'000, runOutOfMemory);
  }
}

TEST_F(GpuStoreFaults, ACopyThatFailsRejectsWhatItWasFor) {
  pushingWith("copy=12", GpuMerge::host, {0, 1}, 20'000, [](const auto& pushed) {
    bool failed = false;
    for (int i = 0; i < 12 && !failed; ++i) failed = pushed().find("ERR_SYSTEM") == 0;
    EXPECT_TRUE(failed);
  });
}

TEST_F(GpuStoreFaults, SlowAKernelThatNeverEndsIsATimeoutAndTheStoreCanGo) {
  // Its memory stays: the GPU may still use it. So nothing is said of leaks here.
  cuda::expectFine({{"GRADLINK_FAKE_FAULTS", "stuck-launch=1"}}, [] {
    const std::vector<int> gpus{0, 0};
    // Enough for what comes before the kernel.
    const auto store = makeGpuStore({.gpus = gpus, .timeoutMs = 2000});
    const KeyId key = defineWith(*store, "a", Floats(100));
    const GpuArrays arrays(gpus, Floats(100, 1));
    const std::string text = outcome(*store, key, arrays);
    EXPECT_EQ(text.find("ERR_TIMEOUT"), 0u) << text;
    EXPECT_NE(text.find("gpu:0"), std::string::npos) << text;
    EXPECT_EQ(outcome(*store, key, arrays), text);
    store->stop();
    std::_Exit(testing::Test::HasFailure() ? 2 : 0);
  });
}

}  // namespace
}  // namespace gradlink::test
