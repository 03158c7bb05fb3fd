// Gradient compression: MXNet's codes and residuals on worked examples, a plain reference on random
// input, and the same bits from every SIMD level and every way of cutting the array.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"
#include "kvstore/base/compression.h"
#include "kvstore/optimizer/simd/kernels.h"

namespace gradlink {
namespace {

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

struct Outcome {
  std::vector<std::uint8_t> codes;
  std::vector<float> residual;
  std::vector<float> decoded;
  bool operator==(const Outcome& other) const {
    return codes == other.codes && decoded == other.decoded && sameBits(residual, other.residual);
  }
};

Outcome reference(const GradientCompression& gc, const std::vector<float>& grad,
                  std::vector<float> residual) {
  Outcome result{std::vector<std::uint8_t>(gc.compressedBytes(grad.size())),
                 {},
                 std::vector<float>(grad.size())};
  const float t = gc.threshold();
  for (std::size_t i = 0; i < grad.size(); ++i) {
    float& r = residual[i];
    r += grad[i];
    if (gc.type() == CompressionType::twoBit) {
      unsigned code = 0;
      if (r >= t) {
        code = 3;
        r -= t;
        result.decoded[i] = t;
      } else if (r <= -t) {
        code = 2;
        r += t;
        result.decoded[i] = -t;
      }
      result.codes[i / 4] =
          static_cast<std::uint8_t>(result.codes[i / 4] | code << (6 - 2 * (i % 4)));
    } else {
      const bool up = r > t;
      r += up ? -1.0f : 1.0f;
      result.decoded[i] = up ? 1.0f : -1.0f;
      result.codes[i / 8] =
          static_cast<std::uint8_t>(result.codes[i / 8] | (up ? 0x80u >> (i % 8) : 0u));
    }
  }
  result.residual = std::move(residual);
  return result;
}

std::vector<float> randomValues(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1.5f, 1.5f);
  std::vector<float> values(count);
  for (float& value : values) {
    value = distribution(engine);
  }
  return values;
}

Outcome inParts(const GradientCompression& gc, const std::vector<float>& grad,
                std::vector<float> residual, std::size_t part) {
  Outcome result{std::vector<std::uint8_t>(gc.compressedBytes(grad.size())),
                 {},
                 std::vector<float>(grad.size())};
  for (std::size_t from = 0; from < grad.size(); from += part) {
    const std::size_t count = std::min(part, grad.size() - from);
    std::uint8_t* codes = result.codes.data() + gc.compressedBytes(from);
    gc.compress(grad.data() + from, residual.data() + from, codes, count);
    gc.decompress(codes, result.decoded.data() + from, count);
  }
  result.residual = std::move(residual);
  return result;
}

TEST(Compression, AgreesWithThePlainReferenceHoweverItIsCut) {
  for (const char* type : {"2bit", "1bit"}) {
    for (const double threshold : {0.5, 0.001, 1.2}) {
      const auto gc = GradientCompression::create(type, threshold);
      for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 1000u, 4099u}) {
        const std::vector<float> grad = randomValues(count, 1);
        const std::vector<float> residual = randomValues(count, 2);
        const Outcome expected = reference(gc, grad, residual);
        for (const std::size_t words : {1u, 3u, 1000u}) {
          EXPECT_EQ(inParts(gc, grad, residual, words * gc.elementsPerWord()), expected)
              << type << " " << threshold << " " << count << " " << words;
        }
        std::vector<float> inPlace = grad;
        std::vector<float> left = residual;
        gc.quantize(inPlace.data(), left.data(), inPlace.data(), count);
        EXPECT_EQ(inPlace, expected.decoded);
        EXPECT_EQ(left, expected.residual);
      }
    }
  }
}

TEST(Compression, WhatIsNoNumberIsSeenOnceAndLeavesNothing) {
  constexpr std::size_t kCount = 37;
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> good = randomValues(kCount, 5);
  for (const char* type : {"2bit", "1bit"}) {
    const auto gc = GradientCompression::create(type, 0.3);
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY, most}) {
      for (const std::size_t at : {0u, 16u, 36u}) {
        std::vector<float> grad = good;
        grad[at] = bad;
        std::vector<float> residual = randomValues(kCount, 6);
        // With the largest number the sum is what overflows.
        if (bad == most) residual[at] = most;
        const std::vector<float> before = residual;
        std::vector<float> quantized = residual;
        std::vector<float> out(kCount);
        gc.quantize(grad.data(), quantized.data(), out.data(), kCount);
        std::vector<std::uint8_t> codes(gc.compressedBytes(kCount));
        gc.compress(grad.data(), residual.data(), codes.data(), kCount);
        std::vector<float> decoded(kCount);
        gc.decompress(codes.data(), decoded.data(), kCount);
        const Outcome expected = reference(gc, good, before);
        for (std::size_t i = 0; i < kCount; ++i) {
          EXPECT_EQ(residual[i], i == at ? before[i] : expected.residual[i]) << type << i;
          EXPECT_EQ(quantized[i], residual[i]) << type << i;
          if (i == at) continue;
          EXPECT_EQ(decoded[i], expected.decoded[i]) << type << i;
          EXPECT_EQ(out[i], expected.decoded[i]) << type << i;
        }
        EXPECT_TRUE(std::isnan(out[at]));
        EXPECT_EQ(std::isnan(decoded[at]), gc.type() == CompressionType::twoBit);
        EXPECT_EQ(gc.codesSay(grad.data(), kCount),
                  gc.type() == CompressionType::twoBit || bad == most);
      }
    }
  }
}

TEST(Compression, EveryLevelGivesTheGenericBits) {
  constexpr std::size_t kCount = 1037;
  std::vector<float> grad = randomValues(kCount, 3);
  for (const std::size_t at : {3u, 500u, 1036u}) grad[at] = std::nanf("");
  const KvKernels& generic = *kvKernels("generic");
  for (const char* level : {"avx2", "avx512"}) {
    const KvKernels* kernels = kvKernels(level);
    if (kernels == nullptr) {
      continue;
    }
    std::vector<std::vector<std::uint8_t>> codes;
    std::vector<std::vector<float>> floats;
    for (const KvKernels* each : {&generic, kernels}) {
      std::vector<std::uint8_t> code(2 * kCount);
      std::vector<float> residual = randomValues(kCount, 4);
      std::vector<float> out(4 * kCount);
      each->compress2(grad.data(), residual.data(), code.data(), 0.3f, kCount);
      each->decompress2(code.data(), out.data(), 0.3f, kCount);
      each->compress1(grad.data(), residual.data(), code.data() + kCount, 0.3f, kCount);
      each->decompress1(code.data() + kCount, out.data() + kCount, kCount);
      each->quantize2(grad.data(), residual.data(), out.data() + 2 * kCount, 0.3f, kCount);
      each->quantize1(grad.data(), residual.data(), out.data() + 3 * kCount, 0.3f, kCount);
      out.insert(out.end(), residual.begin(), residual.end());
      codes.push_back(code);
      floats.push_back(out);
    }
    EXPECT_EQ(codes[0], codes[1]) << level;
    EXPECT_EQ(std::memcmp(floats[0].data(), floats[1].data(), floats[0].size() * sizeof(float)), 0)
        << level;
  }
}

TEST(Compression, RefusesWhatMakesNoSense) {
  EXPECT_THROW(GradientCompression::create("3bit"), Error);
  for (const double threshold : {0.0, -0.5, 1e-50, std::nan(""), 1e300}) {
    EXPECT_THROW(GradientCompression::create("2bit", threshold), Error) << threshold;
  }
  EXPECT_NO_THROW(GradientCompression::create("1bit", -0.5));
  EXPECT_THROW(GradientCompression::create("1bit", std::nan("")), Error);
}

}  // namespace
}  // namespace gradlink
