#include "kvstore/base/compression.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "kvstore/optimizer/simd/kernels.h"

namespace gradlink {
namespace {

// Halves converted at a time: they stay in the first-level cache.
constexpr std::size_t kBlock = 2048;

const char* nameOf(CompressionType type) {
  switch (type) {
    case CompressionType::twoBit:
      return "2bit";
    case CompressionType::oneBit:
      return "1bit";
    case CompressionType::float16:
      return "float16";
    case CompressionType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

}  // namespace

GradientCompression::GradientCompression(CompressionType type, double threshold)
    : type_(type), threshold_(static_cast<float>(threshold)) {
  if (!std::isfinite(threshold_)) {
    throw Error(ErrorCode::invalidArgument,
                "the compression threshold must be a finite float32 number, got " +
                    std::to_string(threshold));
  }
  // Rounded to float32 first: 1e-50 would otherwise pass and then mean 0.
  if (type == CompressionType::twoBit && !(threshold_ > 0)) {
    throw Error(ErrorCode::invalidArgument,
                "the threshold of 2bit compression must be greater than 0, got " +
                    std::to_string(threshold));
  }
}

GradientCompression GradientCompression::create(const std::string& type, double threshold) {
  for (const CompressionType known : {CompressionType::twoBit, CompressionType::oneBit,
                                      CompressionType::float16, CompressionType::bfloat16}) {
    if (type == nameOf(known)) return {known, threshold};
  }
  throw Error(ErrorCode::invalidArgument,
              "unknown gradient compression '" + type +
                  "': the known ones are 1bit, 2bit, bfloat16, float16");
}

const char* GradientCompression::name() const { return nameOf(type_); }

DType GradientCompression::halfType() const {
  return type_ == CompressionType::float16 ? DType::float16 : DType::bfloat16;
}

bool GradientCompression::codesSay(const float* grad, std::size_t count) const {
  if (type_ != CompressionType::oneBit) return true;
  // Without branches, so it runs at memory speed.
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    all &= std::fabs(grad[i]) <= std::numeric_limits<float>::max();
  }
  return all;
}

std::size_t GradientCompression::elementsPerWord() const {
  switch (type_) {
    case CompressionType::twoBit:
      return 16;
    case CompressionType::oneBit:
      return 32;
    default:
      return 2;
  }
}

void GradientCompression::compress(const float* grad, float* residual, std::uint8_t* codes,
                                   std::size_t count) const {
  const KvKernels& kernels = kvKernels();
  switch (type_) {
    case CompressionType::twoBit:
      return kernels.compress2(grad, residual, codes, threshold_, count);
    case CompressionType::oneBit:
      return kernels.compress1(grad, residual, codes, threshold_, count);
    case CompressionType::float16:
    case CompressionType::bfloat16:
      narrow(grad, codes, count, halfType());
      if (count % 2 != 0) std::memset(codes + 2 * count, 0, 2);
  }
}

void GradientCompression::decompress(const std::uint8_t* codes, float* out,
                                     std::size_t count) const {
  const KvKernels& kernels = kvKernels();
  switch (type_) {
    case CompressionType::twoBit:
      return kernels.decompress2(codes, out, threshold_, count);
    case CompressionType::oneBit:
      return kernels.decompress1(codes, out, count);
    case CompressionType::float16:
    case CompressionType::bfloat16:
      return widen(codes, out, count, halfType());
  }
}

void GradientCompression::quantize(const float* grad, float* residual, float* out,
                                   std::size_t count) const {
  const KvKernels& kernels = kvKernels();
  switch (type_) {
    case CompressionType::twoBit:
      return kernels.quantize2(grad, residual, out, threshold_, count);
    case CompressionType::oneBit:
      return kernels.quantize1(grad, residual, out, threshold_, count);
    case CompressionType::float16:
    case CompressionType::bfloat16: {
      alignas(4) std::uint8_t codes[2 * kBlock];
      for (std::size_t first = 0; first < count; first += kBlock) {
        const std::size_t part = std::min(kBlock, count - first);
        compress(grad + first, nullptr, codes, part);
        decompress(codes, out + first, part);
      }
    }
  }
}

}  // namespace gradlink
