#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "test/simd_levels.h"

namespace gradlink {
namespace {

// Every float16 there and back; every float32 near a rounding boundary.
TEST(HalfConversions, AreExactAndRoundToEven) {
  for (const simd::KernelTable* level : allLevels()) {
    SCOPED_TRACE(level->name);
    std::vector<std::uint16_t> halves(65536);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = static_cast<std::uint16_t>(i);
    }
    std::vector<float> wide(halves.size());
    std::vector<std::uint16_t> back(halves.size());
    simd::widen(*level, halves.data(), wide.data(), wide.size(), DType::float16);
    simd::narrow(*level, wide.data(), back.data(), back.size(), DType::float16, 1);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const int exponent = (halves[i] >> 10) & 31;
      const int fraction = halves[i] & 1023;
      if (exponent == 31 && fraction != 0) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        ASSERT_EQ(back[i] & 0x7e00, 0x7e00) << i;
        continue;
      }
      const double value = exponent == 31  ? std::numeric_limits<double>::infinity()
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(std::abs(wide[i]), static_cast<float>(value)) << i;
      ASSERT_EQ(std::signbit(wide[i]), (i & 0x8000) != 0) << i;
      ASSERT_EQ(back[i], halves[i]) << i;
    }
    // Between two neighbours: the exact middle goes to the even one, a little more or less to the
    // nearer.
    for (std::uint32_t i = 0; i < 0x7bff; ++i) {
      const float middle = static_cast<float>((static_cast<double>(wide[i]) + wide[i + 1]) / 2);
      const float probes[] = {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)};
      std::uint16_t got[3];
      simd::narrow(*level, probes, got, 3, DType::float16, 1);
      ASSERT_EQ(got[0], i);
      ASSERT_EQ(got[1], i % 2 == 0 ? i : i + 1);
      ASSERT_EQ(got[2], i + 1);
    }
    const float brains[] = {1.0f, 1.00390625f, 1.01171875f, -3.3895e38f,
                            std::numeric_limits<float>::quiet_NaN()};
    std::uint16_t got[5];
    simd::narrow(*level, brains, got, 5, DType::bfloat16, 1);
    EXPECT_EQ(got[0], 0x3f80);
    EXPECT_EQ(got[1], 0x3f80);  // middle of 1 and 1 + 2^-7, to even
    EXPECT_EQ(got[2], 0x3f82);
    EXPECT_EQ(got[3], 0xff7f);
    EXPECT_EQ(got[4] & 0x7fc0, 0x7fc0);
  }
}

}  // namespace
}  // namespace gradlink
