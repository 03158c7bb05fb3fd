#include "kvstore/compression.h"

#include <cmath>

#include "core/error.h"
#include "kvstore/simd/kernels.h"

namespace gradlink {

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
  if (type == "2bit") {
    return {CompressionType::twoBit, threshold};
  }
  if (type == "1bit") {
    return {CompressionType::oneBit, threshold};
  }
  throw Error(ErrorCode::invalidArgument,
              "unknown gradient compression '" + type + "': the known ones are 1bit, 2bit");
}

void GradientCompression::compress(const float* grad, float* residual, std::uint8_t* codes,
                                   std::size_t count) const {
  const KvKernels& kernels = kvKernels();
  (type_ == CompressionType::twoBit ? kernels.compress2 : kernels.compress1)(grad, residual, codes,
                                                                             threshold_, count);
}

void GradientCompression::decompress(const std::uint8_t* codes, float* out,
                                     std::size_t count) const {
  if (type_ == CompressionType::twoBit) {
    kvKernels().decompress2(codes, out, threshold_, count);
  } else {
    kvKernels().decompress1(codes, out, count);
  }
}

void GradientCompression::quantize(const float* grad, float* residual, float* out,
                                   std::size_t count) const {
  const KvKernels& kernels = kvKernels();
  (type_ == CompressionType::twoBit ? kernels.quantize2 : kernels.quantize1)(grad, residual, out,
                                                                             threshold_, count);
}

}  // namespace gradlink
