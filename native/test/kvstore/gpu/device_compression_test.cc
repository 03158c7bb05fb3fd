// Codes, residuals and meanings on a device are the host's, bit for bit.
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>

#include "cuda/compress.h"
#include "kvstore/base/compression.h"
#include "test/device_support.h"

namespace gradlink::cuda {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

constexpr float kThreshold = 0.3f;

struct Case {
  std::size_t count;
  std::size_t offset = 0;
};
// Around the ends of bytes, words and blocks; and arrays that no vector can be loaded from.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {{1},    {3},    {4},     {7},    {8},      {16},
                                           {17},   {31},   {33},    {4095}, {4096},   {4097},
                                           {8192}, {8193}, {20000}, {0},    {100, 1}, {5001, 3}};
  return kCases;
}

Floats randomValues(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  Floats values(count);
  for (float& value : values) value = distribution(random);
  // On the threshold itself.
  if (count > 2) values[2] = kThreshold;
  if (count > 3) values[3] = -kThreshold;
  return values;
}

class DeviceCompression : public testing::TestWithParam<CompressionType> {
 protected:
  CodeBits bits() const {
    return GetParam() == CompressionType::twoBit ? CodeBits::two : CodeBits::one;
  }
  GradientCompression host() const { return {GetParam(), kThreshold}; }

  OneGpu gpu_;
};

TEST_P(DeviceCompression, CodesAndResidualsAreTheHosts) {
  struct Arrays {
    Floats grad, residual;
    Bytes codes;
    std::unique_ptr<DeviceArray<float>> grads, residuals, out;
    std::unique_ptr<DeviceArray<std::uint8_t>> codesThere;
  };
  std::vector<Arrays> all(cases().size());
  std::vector<CompressTask> compressTasks;
  std::vector<DecompressTask> decompressTasks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [count, offset] = cases()[i];
    Arrays& a = all[i];
    a.grad = randomValues(count, static_cast<unsigned>(i));
    if (count > 2) {
      a.grad[count / 2] = std::nanf("");
      a.grad[count - 1] = INFINITY;
    }
    a.residual = Floats(count, 0);
    EXPECT_EQ(codeBytes(bits(), count), host().compressedBytes(count));
    a.codes = Bytes(codeBytes(bits(), count), 0xee);
    a.grads = std::make_unique<DeviceArray<float>>(gpu_, a.grad, offset);
    a.residuals = std::make_unique<DeviceArray<float>>(gpu_, a.residual, offset);
    a.out = std::make_unique<DeviceArray<float>>(gpu_, Floats(count), offset);
    a.codesThere = std::make_unique<DeviceArray<std::uint8_t>>(gpu_, a.codes, offset);
    compressTasks.push_back({a.grads->data(), a.residuals->data(), a.codesThere->data(), count});
    decompressTasks.push_back({a.codesThere->data(), a.out->data(), count});
  }
  // What the first round leaves over is sent by later ones.
  for (int round = 0; round < 3; ++round) {
    compress(gpu_.stream, gpu_.ring, bits(), kThreshold, compressTasks);
    decompress(gpu_.stream, gpu_.ring, bits(), kThreshold, decompressTasks);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Arrays& a = all[i];
      Floats meaning(a.grad.size());
      host().compress(a.grad.data(), a.residual.data(), a.codes.data(), a.grad.size());
      host().decompress(a.codes.data(), meaning.data(), a.grad.size());
      EXPECT_TRUE(sameBits(a.codesThere->read(), a.codes)) << "round " << round << ", case " << i;
      EXPECT_TRUE(sameBits(a.residuals->read(), a.residual)) << "round " << round << ", case " << i;
      EXPECT_TRUE(sameBits(a.out->read(), meaning)) << "round " << round << ", case " << i;
      EXPECT_TRUE(sameBits(a.grads->read(), a.grad)) << "round " << round << ", case " << i;
    }
  }
}

TEST_P(DeviceCompression, QuantizingIsTheHostsInPlaceToo) {
  for (const bool inPlace : {false, true}) {
    std::vector<Floats> grads;
    std::vector<Floats> residuals;
    std::vector<DeviceArray<float>> gradsThere;
    std::vector<DeviceArray<float>> residualsThere;
    std::vector<DeviceArray<float>> outThere;
    std::vector<QuantizeTask> tasks;
    for (const auto& [count, offset] : cases()) {
      const auto seed = static_cast<unsigned>(grads.size());
      grads.push_back(randomValues(count, 50 + seed));
      if (count > 2) grads.back()[count / 2] = std::nanf("");
      residuals.push_back(randomValues(count, 90 + seed));
      gradsThere.emplace_back(gpu_, grads.back(), offset);
      residualsThere.emplace_back(gpu_, residuals.back(), offset);
      outThere.emplace_back(gpu_, Floats(count), offset);
      tasks.push_back({gradsThere.back().data(), residualsThere.back().data(),
                       inPlace ? gradsThere.back().data() : outThere.back().data(), count});
    }
    quantize(gpu_.stream, gpu_.ring, bits(), kThreshold, tasks);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      Floats out(grads[i].size());
      host().quantize(grads[i].data(), residuals[i].data(), out.data(), out.size());
      EXPECT_TRUE(sameBits((inPlace ? gradsThere : outThere)[i].read(), out)) << "case " << i;
      EXPECT_TRUE(sameBits(residualsThere[i].read(), residuals[i])) << "case " << i;
      if (!inPlace) {
        EXPECT_TRUE(sameBits(gradsThere[i].read(), grads[i])) << "case " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceCompression,
                         testing::Values(CompressionType::twoBit, CompressionType::oneBit),
                         [](const auto& info) {
                           return std::string(info.param == CompressionType::twoBit ? "TwoBit"
                                                                                    : "OneBit");
                         });

}  // namespace
}  // namespace gradlink::cuda
