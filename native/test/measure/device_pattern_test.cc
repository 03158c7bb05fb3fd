// Test data that a device makes and checks is the host's, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/kernels/reduce_kernels.h"
#include "cuda/kernels/tasks.h"
#include "measure/pattern.h"
#include "test/device_support.h"

namespace gradlink::cuda {
namespace {

using measure::Pattern;
using Bytes = std::vector<std::uint8_t>;

/// Of two tiles.
constexpr std::size_t kCount = kernels::kPatternTile + 907;
/// Far in, where a 32-bit index would have wrapped.
constexpr std::size_t kFar = (std::size_t{1} << 33) + 12345;

class DevicePattern : public testing::TestWithParam<int> {
 protected:
  std::vector<Pattern> patterns() const {
    std::vector<Pattern> all;
    for (int op = 0; op < kReduceOpCount; ++op) {
      // 40 ranks are more than bfloat16 and int8 have digits for.
      for (const int size : {1, 3, 8, 40, 300}) {
        all.push_back({static_cast<DType>(GetParam()), static_cast<ReduceOp>(op), size, 99});
      }
    }
    return all;
  }

  std::uint64_t wrongOnDevice(const Bytes& values, std::size_t first, const Pattern& p, int rank) {
    DeviceArray<std::uint8_t> there(gpu_, values);
    const PinnedMemory wrong(sizeof(std::uint64_t));
    auto* const word = static_cast<std::uint64_t*>(wrong.data());
    // What was counted before stays.
    *word = 1000;
    countWrong(gpu_.stream, there.data(), first, values.size() / sizeOf(p.dtype), p.dtype, p.op,
               p.size, p.seed, rank, word);
    gpu_.stream.synchronize();
    return *word - 1000;
  }

  OneGpu gpu_;
};

std::string describe(const Pattern& p) {
  return std::string(nameOf(p.dtype)) + " " + nameOf(p.op) + " of " + std::to_string(p.size);
}

/// The number of a float8 bit pattern, from its definition; NaN where it is none.
double numberOf(DType dtype, unsigned bits) {
  const int mantissaBits = dtype == DType::float8e4m3 ? 3 : 2;
  const int bias = dtype == DType::float8e4m3 ? 7 : 15;
  const unsigned endOfNumbers = dtype == DType::float8e4m3 ? 0x7f : 0x7c;
  const unsigned size = bits & 0x7fu;
  if (size >= endOfNumbers) return std::nan("");
  const int exponent = static_cast<int>(size >> mantissaBits);
  const int ones = 1 << mantissaBits;
  const int mantissa = static_cast<int>(size) % ones + (exponent == 0 ? 0 : ones);
  return (bits > 0x7fu ? -1 : 1) *
         std::ldexp(mantissa, std::max(exponent, 1) - bias - mantissaBits);
}

/// In double; the results are numbers of the type, or the pattern would not be exact.
void reduceFloat8(const std::vector<Bytes>& inputs, Bytes& result, const Pattern& p) {
  std::vector<std::vector<double>> wide;
  std::vector<const void*> sources;
  for (const Bytes& input : inputs) {
    std::vector<double>& one = wide.emplace_back();
    for (const std::uint8_t bits : input) one.push_back(numberOf(p.dtype, bits));
  }
  for (const std::vector<double>& one : wide) sources.push_back(one.data());
  std::vector<double> reduced(result.size());
  void* const out[] = {reduced.data()};
  reduceMany(out, sources, result.size(), DType::float64, p.op);
  for (std::size_t i = 0; i < result.size(); ++i) {
    unsigned bits = 0;
    while (bits < 256 && numberOf(p.dtype, bits) != reduced[i]) ++bits;
    ASSERT_LT(bits, 256u) << describe(p) << ": " << reduced[i] << " is no " << nameOf(p.dtype);
    result[i] = static_cast<std::uint8_t>(bits);
  }
}

TEST_P(DevicePattern, IsFilledAsOnTheHost) {
  for (const Pattern& p : patterns()) {
    for (const std::size_t first : {std::size_t{0}, kFar}) {
      for (const int rank : {0, p.size - 1}) {
        Bytes expected(kCount * sizeOf(p.dtype));
        measure::fillPattern(expected.data(), first, kCount, p, rank);
        DeviceArray<std::uint8_t> there(gpu_, Bytes(expected.size()));
        fillPattern(gpu_.stream, there.data(), first, kCount, p.dtype, p.op, p.size, p.seed, rank);
        EXPECT_TRUE(sameBits(there.read(), expected)) << describe(p) << ", rank " << rank;
      }
    }
  }
}

TEST_P(DevicePattern, InputsAreCheckedAsOnTheHost) {
  for (const Pattern& p : patterns()) {
    Bytes values(kCount * sizeOf(p.dtype));
    measure::fillPattern(values.data(), kFar, kCount, p, p.size - 1);
    EXPECT_EQ(wrongOnDevice(values, kFar, p, p.size - 1), 0u) << describe(p);
    for (std::size_t i = 0; i < kCount; i += 100) values[i * sizeOf(p.dtype)] ^= 1;
    EXPECT_EQ(wrongOnDevice(values, kFar, p, p.size - 1), (kCount + 99) / 100) << describe(p);
  }
}

TEST_P(DevicePattern, ReductionsAreCheckedAsOnTheHost) {
  constexpr std::size_t kFew = 500;
  for (const Pattern& p : patterns()) {
    std::vector<Bytes> inputs(static_cast<std::size_t>(p.size), Bytes(kFew * sizeOf(p.dtype)));
    std::vector<const void*> sources;
    for (int rank = 0; rank < p.size; ++rank) {
      Bytes& input = inputs[static_cast<std::size_t>(rank)];
      measure::fillPattern(input.data(), 7, kFew, p, rank);
      sources.push_back(input.data());
    }
    Bytes result(kFew * sizeOf(p.dtype));
    if (isFloat8(p.dtype)) {
      reduceFloat8(inputs, result, p);
    } else {
      void* const out[] = {result.data()};
      reduceMany(out, sources, kFew, p.dtype, p.op);
    }
    EXPECT_EQ(wrongOnDevice(result, 7, p, -1), 0u) << describe(p);
    result[0] ^= 1;
    result[(kFew - 1) * sizeOf(p.dtype)] ^= 1;
    EXPECT_EQ(wrongOnDevice(result, 7, p, -1), 2u) << describe(p);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DevicePattern, testing::Range(0, kGpuDTypeCount),
                         [](const auto& info) {
                           return std::string(nameOf(static_cast<DType>(info.param)));
                         });

}  // namespace
}  // namespace gradlink::cuda
