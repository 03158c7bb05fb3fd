// What a store packs for NCCL lies in memory that it knows, where that is of use, and else where it
// did.
#include "test/kvstore/gpu/support.h"
#include "test/nccl/support.h"

namespace gradlink::test {
namespace {

/// In the order of the stand-in's counts.
enum class PackCount { local, windows, live, symmetric };

/// What the stand-in counts; nothing of the library itself.
std::optional<std::size_t> countOfPacks(PackCount which) {
  return countOf("gradlinkFakeNcclRegistered", static_cast<int>(which));
}

/// Keys that are pushed and pulled together.
class PackedKeys {
 public:
  PackedKeys(Store& store, const std::vector<int>& gpus, std::size_t keys, std::size_t count)
      : store_(store), gpus_(gpus), count_(count) {
    static int made = 0;
    for (std::size_t i = 0; i < keys; ++i) {
      keys_.push_back(defineWith(store, "packed" + std::to_string(made++), Floats(count)));
    }
  }
  /// Whether each key came back as the sum of what was pushed, on every GPU.
  bool sumUp() {
    std::vector<GpuArrays> arrays;
    std::vector<float> sums(keys_.size());
    ++turn_;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::vector<Floats> values;
      for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        const auto value = static_cast<float>(100 * turn_ + 10 * i + gpu);
        values.emplace_back(count_, value);
        sums[i] += value;
      }
      arrays.emplace_back(gpus_, values);
    }
    pushPullAll(store_, keys_, arrays);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      for (const Floats& came : arrays[i].read()) {
        if (came != Floats(count_, sums[i])) return false;
      }
    }
    return true;
  }

 private:
  Store& store_;
  const std::vector<int> gpus_;
  const std::size_t count_;
  std::vector<KeyId> keys_;
  std::size_t turn_ = 0;
};

std::unique_ptr<Store> openForPacks(const std::vector<int>& gpus, double timeoutMs = 30000) {
  GpuStoreOptions options{.gpus = gpus,
                          .merge = GpuMerge::nccl,
                          .fuseBelowBytes = std::size_t{4} << 20,
                          .timeoutMs = timeoutMs};
  return makeGpuStore(options);
}

TEST(GpuStorePacks, AreRegisteredFromTheSecondRoundOn) {
  std::vector<int> gpus = gpusOf(GpuMerge::nccl);
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU has nothing to sum";
  gpus.resize(2);
  {
    const auto store = openForPacks(gpus);
    PackedKeys keys(*store, gpus, 5, 1000);
    EXPECT_TRUE(keys.sumUp());
    if (!countOfPacks(PackCount::windows)) GTEST_SKIP() << "only the stand-in counts its calls";
    const std::size_t windows = *countOfPacks(PackCount::windows);
    const std::size_t symmetric = *countOfPacks(PackCount::symmetric);
    EXPECT_TRUE(keys.sumUp());
    EXPECT_TRUE(keys.sumUp());
    EXPECT_EQ(*countOfPacks(PackCount::windows), windows + gpus.size());
    EXPECT_EQ(*countOfPacks(PackCount::symmetric), symmetric + 2);
    // More than there is room for: once more, and what there was is let go of.
    PackedKeys many(*store, gpus, 3, 720'000);
    EXPECT_TRUE(many.sumUp());
    EXPECT_TRUE(many.sumUp());
    EXPECT_TRUE(keys.sumUp());
    EXPECT_EQ(*countOfPacks(PackCount::windows), windows + 2 * gpus.size());
    EXPECT_EQ(*countOfPacks(PackCount::live), gpus.size());
  }
  EXPECT_EQ(*countOfPacks(PackCount::live), 0U);
}

TEST(GpuStorePacks, AreNotRegisteredWhereASumHasARoot) {
  const std::vector<int> gpus = gpusOf(GpuMerge::nccl);
  const auto store = openForPacks(gpus);
  store->setOptimizer(optimizerOf("sgd"));
  PackedKeys keys(*store, gpus, 5, 1000);
  for (int i = 0; i < 3; ++i) keys.sumUp();
  if (!countOfPacks(PackCount::live)) GTEST_SKIP() << "only the stand-in counts its calls";
  EXPECT_EQ(*countOfPacks(PackCount::live), 0U);
}

using GpuPackFaults = cuda::FreshFakes;

/// Three rounds in a process with these settings, which must leave nothing on the stand-ins.
void sumUpWith(const char* name, const char* value, double timeoutMs = 30000) {
  const auto body = [&] {
    const std::vector<int> gpus{0, 1, 2};
    const auto store = openForPacks(gpus, timeoutMs);
    PackedKeys keys(*store, gpus, 5, 1000);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(keys.sumUp());
    EXPECT_EQ(*countOfPacks(PackCount::symmetric), 0U);
  };
  EXPECT_EQ(cuda::leftBy({{name, value}}, body), "") << value;
}

TEST_F(GpuPackFaults, WhereNothingIsRegisteredAllIsAsGood) {
  sumUpWith("GRADLINK_FAKE_FAULTS", "nccl-version=22602");  // without windows
  sumUpWith("GRADLINK_FAKE_FAULTS", "nccl-version=21805");
  sumUpWith("GRADLINK_FAKE_FAULTS", "nccl-windows=none");
  sumUpWith("GRADLINK_FAKE_FAULTS", "nccl-windows=fails");
  // Enough for an opening and a round each.
  sumUpWith("GRADLINK_FAKE_FAULTS", "nccl-windows=stuck", 2000);
  sumUpWith("GRADLINK_NCCL_REGISTER", "no");
}

}  // namespace
}  // namespace gradlink::test
