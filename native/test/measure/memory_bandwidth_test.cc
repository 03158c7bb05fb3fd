#include "measure/memory_bandwidth.h"

#include <gtest/gtest.h>

#include "test/thrown.h"

namespace gradlink::measure {
namespace {

TEST(MemoryBandwidth, CountsWhatEachLoopReadsAndWrites) {
  const double size = 1 << 16;
  const double expected[kMemoryLoopCount] = {2 * size, 3 * size, 6 * size, 6 * size, 4 * size};
  for (int loop = 0; loop < kMemoryLoopCount; ++loop) {
    for (const int threads : {1, 2, 4}) {
      const MemoryBandwidth result = memoryBandwidth({.loop = static_cast<MemoryLoop>(loop),
                                                      .bytes = 1 << 16,
                                                      .arrays = 3,
                                                      .threads = threads,
                                                      .warmup = 1,
                                                      .samples = 4,
                                                      .repeats = 2});
      EXPECT_EQ(result.bytes, expected[loop]) << loop;
      ASSERT_EQ(result.seconds.size(), 4u);
      for (const double seconds : result.seconds) EXPECT_GT(seconds, 0) << loop;
    }
  }
}

TEST(MemoryBandwidth, RoundsDownToWholeLinesOfEachThread) {
  const MemoryBandwidth result = memoryBandwidth({.bytes = 1000, .threads = 3, .samples = 1});
  EXPECT_EQ(result.bytes, 2 * 3 * 320);
  EXPECT_EQ(memoryBandwidth({.bytes = 0, .threads = 2, .samples = 1}).bytes, 2 * 2 * 64);
}

TEST(MemoryBandwidth, StreamsLargeResults) {
  const MemoryBandwidth result = memoryBandwidth({.loop = MemoryLoop::reduceOutOfPlace,
                                                  .bytes = std::size_t{16} << 20,
                                                  .arrays = 2,
                                                  .warmup = 0,
                                                  .samples = 1});
  EXPECT_EQ(result.bytes, 4.0 * (std::size_t{16} << 20));
}

TEST(MemoryBandwidth, RefusesCountsBelowOne) {
  for (const MemoryBandwidthOptions& options :
       {MemoryBandwidthOptions{.bytes = 64, .threads = 0},
        MemoryBandwidthOptions{.bytes = 64, .samples = 0},
        MemoryBandwidthOptions{.bytes = 64, .arrays = 0},
        MemoryBandwidthOptions{.bytes = 64, .repeats = 0}}) {
    test::expectMisuse([&] { memoryBandwidth(options); });
  }
}

TEST(MemoryBandwidth, SaysThatTheMemoryIsNotThere) {
  EXPECT_EQ(test::codeOf([] { memoryBandwidth({.bytes = std::size_t{1} << 60}); }),
            ErrorCode::outOfMemory);
}

}  // namespace
}  // namespace gradlink::measure
