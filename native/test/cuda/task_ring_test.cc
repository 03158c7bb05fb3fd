// Lists of tasks travel beside the work of their stream, and wait in a ring that is used again.
#include "test/cuda/support.h"
#include "test/device_support.h"

namespace gradlink::cuda {
namespace {

/// A list of some 100 KB, so that a few fill the ring.
struct ManyCopies {
  static constexpr std::size_t kArrays = 2000;
  explicit ManyCopies(OneGpu& gpu) : to(gpu, std::vector<std::uint8_t>(kArrays)) {
    for (std::size_t i = 0; i < kArrays; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + 1);
  }
  /// Each element from another place than in the rounds before.
  std::vector<SumTask> round(const DeviceArray<std::uint8_t>& from, std::size_t turn) const {
    std::vector<SumTask> tasks(kArrays);
    for (std::size_t i = 0; i < kArrays; ++i) {
      tasks[i] = {{from.data() + (i + turn) % kArrays}, {to.data() + i}, 1};
    }
    return tasks;
  }
  std::vector<std::uint8_t> values = std::vector<std::uint8_t>(kArrays);
  DeviceArray<std::uint8_t> to;
};

TEST(DeviceTaskRing, MoreListsThanItHoldsWhileTheStreamStandsStill) {
  OneGpu gpu;
  ManyCopies copies(gpu);
  const DeviceArray<std::uint8_t> from(gpu, copies.values);
  constexpr std::size_t kRounds = 40;
  constexpr std::size_t kHalf = ManyCopies::kArrays / 2;
  for (std::size_t turn = 0; turn <= kRounds; ++turn) {
    std::vector<SumTask> tasks = copies.round(from, turn);
    // The first list alone writes the second half.
    if (turn > 0) tasks.resize(kHalf);
    sum(gpu.stream, gpu.ring, DType::uint8, tasks);
  }
  std::vector<std::uint8_t> expected = copies.values;
  for (std::size_t i = 0; i < kHalf; ++i) {
    expected[i] = copies.values[(i + kRounds) % ManyCopies::kArrays];
  }
  EXPECT_EQ(copies.to.read(), expected);
}

/// On the compute stream: the wait for the list, and the kernel.
TEST(DeviceTaskRing, AListIsNoCopyOnTheStream) {
  if (!onFakes()) GTEST_SKIP() << "needs the stand-ins, which count what is queued";
  OneGpu gpu;
  const DeviceArray<float> from(gpu, {1, 2, 3});
  const DeviceArray<float> to(gpu, {0, 0, 0});
  const SumTask task{{from.data()}, {to.data()}, 3};
  const std::uint64_t before = queuedOn(gpu.stream.handle());
  constexpr std::uint64_t kSums = 100;
  for (std::uint64_t i = 0; i < kSums; ++i) {
    sum(gpu.stream, gpu.ring, DType::float32, {&task, 1});
  }
  EXPECT_EQ(queuedOn(gpu.stream.handle()) - before, 2 * kSums);
}

class DeviceTaskRingTimes : public FreshFakes {};

TEST_F(DeviceTaskRingTimes, AListTravelsWhileTheKernelsBeforeItRun) {
  // 4 MB copied at 1 TB/s: 4 us a sum; a list of 56 bytes at 20 MB/s: 2.8 us.
  expectFine({{"GRADLINK_FAKE_LINKS", "0-0=1e12,host-0=2e7"}}, [] {
    OneGpu gpu;
    constexpr std::size_t kCount = 1'000'000;
    const DeviceMemory from(gpu.device, kCount * sizeof(float));
    const DeviceMemory to(gpu.device, kCount * sizeof(float));
    const SumTask task{{from.data()}, {to.data()}, kCount};
    Event begun(gpu.device, true);
    Event ended(gpu.device, true);
    begun.record(gpu.stream);
    for (int i = 0; i < 20; ++i) {
      sum(gpu.stream, gpu.ring, DType::float32, {&task, 1});
    }
    ended.record(gpu.stream);
    gpu.stream.synchronize();
    // The first list is waited for, no other.
    EXPECT_NEAR(ended.secondsSince(begun), 20 * 4e-6 + 2.8e-6, 1e-6);
  });
}

}  // namespace
}  // namespace gradlink::cuda
