// What goes wrong below a store on GPUs: it ends as an error, soon, and leaves nothing. The
// stand-ins make it go wrong; each case is a process of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/kvstore/gpu/support.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kFaultCount = 50'000;

class GpuStoreFaults : public cuda::FreshProcesses {
 protected:
  void SetUp() override {
    if (!cuda::onFakes()) GTEST_SKIP() << "needs GPUs that fail when asked to";
    setenv("GRADLINK_FAKE_GPUS", "4", 1);
  }
};

/// A push of ones, and what it failed with: "ERR_... message", or "".
std::string outcome(Store& store, KeyId key, const GpuArrays& arrays) {
  try {
    push(store, key, arrays);
  } catch (const Error& error) {
    return std::string(nameOf(error.code)) + " " + error.what();
  }
  return "";
}

std::string outcomeOfOpening(Store& store) {
  Waiter waiter;
  store.barrier(waiter.ticket());
  try {
    waiter.wait();
  } catch (const Error& error) {
    return std::string(nameOf(error.code)) + " " + error.what();
  }
  return "";
}

/// Runs `body` with these faults in a process of its own, which must leave nothing on the fakes.
/// `limitMs`: of the store.
void withFaults(const std::string& faults, GpuMerge merge, std::vector<int> gpus, double limitMs,
                const std::function<void(Store&, const std::vector<int>&)>& body) {
  // The process is this executable run anew, and must come to the same name.
  constexpr const char* kVariable = "GRADLINK_TEST_LEAKS";
  const char* inherited = std::getenv(kVariable);
  const std::string leaks = inherited != nullptr
                                ? inherited
                                : (std::filesystem::temp_directory_path() /
                                   ("gradlink-store-leaks-" + std::to_string(getpid())))
                                      .string();
  setenv(kVariable, leaks.c_str(), 1);
  EXPECT_EXIT(cuda::inProcess({{"GRADLINK_FAKE_FAULTS", faults}, {"GRADLINK_FAKE_LEAKS", leaks}},
                              [&] {
                                GpuStoreOptions options;
                                options.gpus = gpus;
                                options.merge = merge;
                                options.timeoutMs = limitMs;
                                const auto store = makeGpuStore(options);
                                body(*store, gpus);
                              }),
              testing::ExitedWithCode(0), "");
  std::ifstream file(leaks);
  EXPECT_TRUE(file.is_open());
  const std::string left((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(left, "");
  std::filesystem::remove(leaks);
  unsetenv(kVariable);
}

TEST_F(GpuStoreFaults, NcclFailsOnTheWay) {
  withFaults("nccl-async=2@1", GpuMerge::nccl, {0, 1, 2}, 20'000,
             [](Store& store, const std::vector<int>& gpus) {
               const KeyId key = defineWith(store, "a", Floats(kFaultCount));
               const GpuArrays arrays(gpus, Floats(kFaultCount, 1));
               EXPECT_EQ(outcome(store, key, arrays), "");
               EXPECT_EQ(lacking(outcome(store, key, arrays), {"ERR_SYSTEM", "system error"}), "");
               // The communicator is gone, and says so.
               EXPECT_NE(outcome(store, key, arrays), "");
             });
}

TEST_F(GpuStoreFaults, ARankThatIsStuckIsATimeout) {
  // Enough for the opening and the first push.
  withFaults("nccl-stuck=2@2", GpuMerge::automatic, {0, 1, 2}, 2000,
             [](Store& store, const std::vector<int>& gpus) {
               const KeyId key = defineWith(store, "a", Floats(kFaultCount));
               const GpuArrays arrays(gpus, Floats(kFaultCount, 1));
               EXPECT_EQ(outcome(store, key, arrays), "");
               EXPECT_EQ(outcome(store, key, arrays).find("ERR_TIMEOUT"), 0u);
             });
}

TEST_F(GpuStoreFaults, ARankThatNeverJoinsEndsTheOpening) {
  withFaults("nccl-never=1", GpuMerge::nccl, {0, 1}, 200,
             [](Store& store, const std::vector<int>& gpus) {
               EXPECT_EQ(outcomeOfOpening(store).find("ERR_TIMEOUT"), 0u);
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
  OptimizerSpec centered;
  centered.name = "rmsprop";
  centered.numbers = {{"centered", 1}};
  // No room for its three states beside value and gradient, nor for half of them on each GPU.
  store.setOptimizer(Optimizer::create(centered));
  const KeyId key = defineWith(store, "a", Floats(3'500'000));
  const GpuArrays arrays(gpus, Floats(3'500'000, 1));
  EXPECT_EQ(outcome(store, key, arrays).find("ERR_OUT_OF_MEMORY"), 0u);
  store.setOptimizer(nullptr);
  EXPECT_EQ(outcome(store, key, arrays), "");
}

TEST_F(GpuStoreFaults, MemoryRunsOutBetweenPeers) {
  withFaults("oom=40000000", GpuMerge::peer, {0, 1}, 20'000, runOutOfMemory);
}

TEST_F(GpuStoreFaults, MemoryRunsOutWithNccl) {
  withFaults("oom=40000000", GpuMerge::nccl, {0, 1}, 20'000, runOutOfMemory);
}

TEST_F(GpuStoreFaults, ACopyThatFailsRejectsWhatItWasFor) {
  withFaults("copy=12", GpuMerge::host, {0, 1}, 20'000,
             [](Store& store, const std::vector<int>& gpus) {
               const KeyId key = defineWith(store, "a", Floats(kFaultCount));
               const GpuArrays arrays(gpus, Floats(kFaultCount, 1));
               bool failed = false;
               for (int i = 0; i < 12 && !failed; ++i) {
                 failed = outcome(store, key, arrays).find("ERR_SYSTEM") == 0;
               }
               EXPECT_TRUE(failed);
             });
}

TEST_F(GpuStoreFaults, SlowAKernelThatNeverEndsIsATimeoutAndTheStoreCanGo) {
  // Its memory stays: the GPU may still use it. So nothing is said of leaks here.
  EXPECT_EXIT(cuda::inProcess({{"GRADLINK_FAKE_FAULTS", "stuck-launch=1"}},
                              [] {
                                GpuStoreOptions options;
                                options.gpus = {0, 0};
                                // Enough for what comes before the kernel.
                                options.timeoutMs = 2000;
                                const auto store = makeGpuStore(options);
                                const KeyId key = defineWith(*store, "a", Floats(100));
                                const GpuArrays arrays(options.gpus, Floats(100, 1));
                                const std::string text = outcome(*store, key, arrays);
                                EXPECT_EQ(text.find("ERR_TIMEOUT"), 0u) << text;
                                EXPECT_NE(text.find("gpu:0"), std::string::npos) << text;
                                EXPECT_EQ(outcome(*store, key, arrays), text);
                                store->stop();
                                std::_Exit(testing::Test::HasFailure() ? 2 : 0);
                              }),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradlink::test
