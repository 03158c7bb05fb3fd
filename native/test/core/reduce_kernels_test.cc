#include "core/kernels/reduce_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/reference.h"
#include "test/simd_levels.h"

namespace gradlink {
namespace {

using reference::Bytes;

constexpr std::size_t kLengths[] = {0,  1,  2,  3,  7,   8,   15,  16,   17,  31,
                                    33, 63, 64, 65, 129, 255, 257, 1000, 4099};
constexpr std::size_t kLongest = 4099;
constexpr std::size_t kSlack = 70;  // elements on both sides, for offsets and to see stray writes

/// Arrays of the longest length for one (dtype, op, k), with the expected result.
struct Case {
  DType dtype;
  ReduceOp op;
  std::vector<Bytes> src;
  Bytes expected;

  Case(DType dtype, ReduceOp op, std::size_t k) : dtype(dtype), op(op) {
    std::vector<const void*> in;
    for (std::size_t s = 0; s < k; ++s) {
      src.push_back(
          reference::randomArray(kLongest, dtype, static_cast<std::uint32_t>(100 * k + s)));
      in.push_back(src.back().data());
    }
    expected.resize(kLongest * sizeOf(dtype));
    reference::reduce(expected.data(), in, kLongest, dtype, op);
  }
};

/// Room for an array at `offset` elements, filled with a value that must survive around it.
struct Guarded {
  Guarded(std::size_t count, std::size_t offset, std::size_t elementBytes)
      : memory((count + 2 * kSlack) * elementBytes, 0xa5),
        begin(offset * elementBytes),
        bytes(count * elementBytes) {}
  std::uint8_t* data() { return memory.data() + begin; }
  bool untouchedAround() const {
    const auto guard = [](std::uint8_t byte) { return byte == 0xa5; };
    return std::all_of(memory.begin(), memory.begin() + begin, guard) &&
           std::all_of(memory.begin() + begin + bytes, memory.end(), guard);
  }
  Bytes memory;
  std::size_t begin;
  std::size_t bytes;
};

/// Runs with `inPlace` of the sources and `others` more destinations and compares every
/// destination.
void check(const simd::KernelTable& level, const Case& c, std::size_t count, std::size_t offset,
           std::size_t inPlace, std::size_t others, bool streaming) {
  const std::size_t elementBytes = sizeOf(c.dtype);
  std::vector<Guarded> src;
  std::vector<const void*> in;
  std::vector<void*> out;
  src.reserve(c.src.size());
  for (std::size_t s = 0; s < c.src.size(); ++s) {
    src.emplace_back(count, (offset * (s + 1)) % kSlack, elementBytes);
    std::copy_n(c.src[s].data(), count * elementBytes, src.back().data());
    in.push_back(src.back().data());
    if (s < inPlace) out.push_back(src.back().data());
  }
  std::vector<Guarded> dst;
  dst.reserve(others);
  for (std::size_t d = 0; d < others; ++d) {
    // The last destination is aligned otherwise than the rest, so that not all can stream.
    dst.emplace_back(count, offset + (d + 1 == others ? 1 : 0), elementBytes);
    out.push_back(dst.back().data());
  }
  simd::reduceMany(level, out, in, count, c.dtype, c.op, streaming);
  const std::string what =
      std::string(level.name) + " " + nameOf(c.dtype) + " " + nameOf(c.op) +
      " k=" + std::to_string(c.src.size()) + " count=" + std::to_string(count) +
      " offset=" + std::to_string(offset) + " in place=" + std::to_string(inPlace) +
      " out of place=" + std::to_string(others) + (streaming ? " streaming" : "");
  for (void* result : out) {
    ASSERT_EQ(reference::difference(result, c.expected.data(), count, c.dtype), "") << what;
  }
  for (std::size_t s = inPlace; s < src.size(); ++s) {
    ASSERT_TRUE(std::equal(src[s].data(), src[s].data() + src[s].bytes, c.src[s].data()))
        << what << ": a source changed";
  }
  for (const Guarded& array : src) ASSERT_TRUE(array.untouchedAround()) << what;
  for (const Guarded& array : dst) ASSERT_TRUE(array.untouchedAround()) << what;
}

class ReduceKernels : public testing::TestWithParam<DType> {};

TEST_P(ReduceKernels, EqualTheReferenceAtEveryLevel) {
  const auto dtype = GetParam();
  for (int op = 0; op < kReduceOpCount; ++op) {
    for (std::size_t k = 1; k <= 9; ++k) {
      const Case c(dtype, static_cast<ReduceOp>(op), k);
      for (const simd::KernelTable* level : allLevels()) {
        for (const std::size_t count : kLengths) {
          check(*level, c, count, 0, k, 0, false);
          check(*level, c, count, count % 5, 0, 1, false);
          if (HasFatalFailure()) return;
        }
        for (const std::size_t count : {std::size_t{65}, std::size_t{1000}, kLongest}) {
          check(*level, c, count, 3, 1, 2, false);
          check(*level, c, count, 3, 1, 3, true);
          check(*level, c, count, 0, 0, 2, true);
          check(*level, c, count, 0, k, 0, true);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDType, ReduceKernels, testing::ValuesIn(kHostDTypes),
                         [](const auto& info) { return nameOf(info.param); });

TEST(ReduceKernels, TakeManySourcesAndDestinations) {
  const Case c(DType::float32, ReduceOp::sum, 70);
  for (const simd::KernelTable* level : allLevels()) {
    check(*level, c, 1000, 0, 70, 0, false);
    check(*level, c, 1000, 3, 10, 60, true);
  }
}

TEST(ReduceKernels, DivideAsAveragesDo) {
  for (const DType dtype : kHostDTypes) {
    const std::size_t elementBytes = sizeOf(dtype);
    const Bytes data = reference::randomArray(kLongest, dtype, 7);
    // What adds nothing, not even to -0.
    Bytes nothing(data.size());
    for (std::size_t at = elementBytes - 1; at < nothing.size(); at += elementBytes) {
      if (reference::isFloat(dtype)) nothing[at] = 0x80;
    }
    for (const std::size_t divisor : {1, 2, 3, 7}) {
      std::vector<const void*> in(divisor, nothing.data());
      in[0] = data.data();
      Bytes expected(data.size());
      reference::reduce(expected.data(), in, kLongest, dtype, ReduceOp::avg);
      for (const simd::KernelTable* level : allLevels()) {
        Bytes got = data;
        void* const dst[] = {got.data()};
        const void* const src[] = {got.data()};
        simd::reduceMany(*level, dst, src, kLongest, dtype, ReduceOp::avg, {}, divisor);
        EXPECT_EQ(reference::difference(got.data(), expected.data(), kLongest, dtype), "")
            << level->name << " " << nameOf(dtype) << " by " << divisor;
      }
    }
  }
}

/// Averages each array with the other through every level.
Bytes average(const simd::KernelTable& level, const Bytes& a, const Bytes& b, DType dtype) {
  Bytes out(a.size());
  const void* in[] = {a.data(), b.data()};
  void* dst[] = {out.data()};
  simd::reduceMany(level, dst, in, a.size() / sizeOf(dtype), dtype, ReduceOp::avg, false);
  return out;
}

TEST(ReduceKernels, NarrowFloatsRoundTiesToEvenForEveryValue) {
  // The average of two neighbours is the middle between them, exactly.
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const std::uint16_t infinity = dtype == DType::float16 ? 0x7c00 : 0x7f80;
    Bytes low;
    Bytes high;
    Bytes expected;
    const auto append = [](Bytes& to, std::uint16_t bits) {
      to.push_back(static_cast<std::uint8_t>(bits));
      to.push_back(static_cast<std::uint8_t>(bits >> 8));
    };
    for (const std::uint16_t sign : {0, 0x8000}) {
      // bfloat16's largest values are left out: float32's sum of two of them is infinite.
      const std::uint16_t end = dtype == DType::float16 ? infinity - 1 : infinity - 129;
      for (std::uint16_t bits = 0; bits < end; ++bits) {
        append(low, sign | bits);
        append(high, sign | (bits + 1));
        append(expected, sign | (bits + (bits & 1)));
      }
    }
    for (const simd::KernelTable* level : allLevels()) {
      const Bytes got = average(*level, low, high, dtype);
      EXPECT_EQ(reference::difference(got.data(), expected.data(), got.size() / 2, dtype), "")
          << level->name << " " << nameOf(dtype);
      // One element at a time takes the scalar path of the same level.
      for (std::size_t i = 0; i < 40; ++i) {
        const std::size_t at = i * 2 * 1500;
        const Bytes one = average(*level, Bytes(low.begin() + at, low.begin() + at + 2),
                                  Bytes(high.begin() + at, high.begin() + at + 2), dtype);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), expected.begin() + at)) << level->name << at;
      }
    }
  }
}

TEST(ReduceKernels, WeightedSumEqualsTheReference) {
  const std::vector<double> weights = {0.3, -1.7, 1, 2.5e-3, 0.1};
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    std::vector<Bytes> src;
    std::vector<const void*> in;
    for (std::uint32_t s = 0; s < weights.size(); ++s)
      src.push_back(reference::randomArray(kLongest, dtype, s));
    for (const Bytes& array : src) in.push_back(array.data());
    for (std::size_t k = 1; k <= weights.size(); ++k) {
      Bytes expected(src[0].size());
      for (std::size_t i = 0; i < kLongest; ++i) {
        const auto sumAs = [&]<class T>(T) {
          T sum = 0;
          for (std::size_t s = 0; s < k; ++s) {
            const T one =
                static_cast<T>(reference::numberAt(in[s], i, dtype)) * static_cast<T>(weights[s]);
            sum = s == 0 ? one : sum + one;
          }
          reference::put(expected.data(), i, dtype, sum);
        };
        dtype == DType::float64 ? sumAs(double{}) : sumAs(float{});
      }
      for (const simd::KernelTable* level : allLevels()) {
        for (const std::size_t count : kLengths) {
          std::vector<Bytes> mine(src.begin(), src.begin() + k);
          std::vector<const void*> from;
          for (const Bytes& array : mine) from.push_back(array.data());
          // In place on the last source.
          simd::weightedSum(*level, mine[k - 1].data(), from, {weights.data(), k}, count, dtype);
          ASSERT_EQ(reference::difference(mine[k - 1].data(), expected.data(), count, dtype), "")
              << level->name << " " << nameOf(dtype) << " k=" << k << " count=" << count;
        }
      }
    }
  }
}

TEST(ReduceKernels, WeightedSumOfNothingIsZero) {
  std::vector<float> out(5, 3.0f);
  weightedSum(out.data(), {}, {}, 5, DType::float32);
  EXPECT_EQ(out, std::vector<float>(5, 0.0f));
}

TEST(CopyMany, CopiesToAllAndLeavesTheSourceAlone) {
  const Bytes source = reference::randomArray(9000, DType::uint8, 1);
  for (const simd::KernelTable* level : allLevels()) {
    for (const std::size_t bytes : {0, 1, 8, 63, 2047, 2048, 2049, 8999}) {
      for (const bool streaming : {false, true}) {
        for (const std::size_t copies : {1, 2, 3, 40}) {
          std::vector<Guarded> to;
          std::vector<void*> dst;
          to.reserve(copies);
          for (std::size_t i = 0; i < copies; ++i) {
            to.emplace_back(bytes, i % 3, 1);
            dst.push_back(to.back().data());
          }
          dst.push_back(const_cast<std::uint8_t*>(source.data()));
          const Bytes before = source;
          simd::copyMany(*level, dst, source.data(), bytes, streaming);
          EXPECT_EQ(source, before);
          for (Guarded& array : to) {
            ASSERT_TRUE(std::equal(source.begin(), source.begin() + bytes, array.data()))
                << level->name << " " << bytes << " bytes to " << copies
                << (streaming ? " streaming" : "");
            ASSERT_TRUE(array.untouchedAround());
          }
        }
      }
    }
  }
}

TEST(SimdLevel, NamesTheLevelInUse) { EXPECT_STREQ(simdLevel(), simd::currentLevel().name); }
TEST(SimdLevel, IsThereWhereItsTableIs) {
  for (const simd::KernelTable* level : allLevels()) EXPECT_TRUE(hasSimdLevel(level->name));
  EXPECT_TRUE(hasSimdLevel(simdLevel()));
  EXPECT_TRUE(hasSimdLevel("scalar"));
  EXPECT_FALSE(hasSimdLevel("avx"));
  EXPECT_FALSE(hasSimdLevel(""));
}

TEST(SimdLevel, EnvironmentChoosesDownwards) {
  const auto levels = allLevels();
  EXPECT_EQ(&simd::levelFor(nullptr), levels.back());
  EXPECT_EQ(&simd::levelFor("avx512"), levels.back());
  EXPECT_EQ(&simd::levelFor("nonsense"), levels.back());
  EXPECT_STREQ(simd::levelFor("scalar").name, "scalar");
  for (const simd::KernelTable* level : levels) EXPECT_EQ(&simd::levelFor(level->name), level);
}

}  // namespace
}  // namespace gradlink
