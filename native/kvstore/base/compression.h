// Gradient compression: 2bit and 1bit with error feedback, bit for bit as in MXNet; float16 and
// bfloat16, rounded to nearest without feedback.
//
// 2bit, threshold t > 0: r += g; r >= t sends 11 and r -= t; r <= -t sends 10 and r += t; else 00.
// Four codes a byte, first element in the top two bits. 11 decodes to +t, 10 to -t, 00 to 0.
// 1bit, any t: r += g; r > t sends 1 and r -= 1; else 0 and r += 1. Eight codes a byte, first in
// the top bit. 1 decodes to +1, 0 to -1 (not to +t and -t). All arithmetic is float32. Codes are
// padded with zero bits to whole 32-bit words.
//
// Beyond MXNet, if r is not finite: r stays, 2bit sends 01, which decodes to NaN, and quantize()
// gives NaN. The codes of 1bit cannot express it, see codesSay().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernels/dtype.h"

namespace gradlink {

enum class CompressionType : std::uint8_t { twoBit = 0, oneBit = 1, float16 = 2, bfloat16 = 3 };

class GradientCompression {
 public:
  /// Throws Error(invalidArgument) for a threshold that is not finite, or not above 0 with 2bit.
  GradientCompression(CompressionType type, double threshold);
  /// From "2bit", "1bit", "float16" or "bfloat16"; any other name throws.
  static GradientCompression create(const std::string& type, double threshold = 0.5);

  CompressionType type() const { return type_; }
  float threshold() const { return threshold_; }
  const char* name() const;
  /// Whether residuals keep what the codes lose; else they may be null.
  bool feedsBack() const {
    return type_ == CompressionType::twoBit || type_ == CompressionType::oneBit;
  }

  /// Whether the codes can express `grad`; else send the result of quantize().
  bool codesSay(const float* grad, std::size_t count) const;

  /// Elements in one 32-bit word of codes: 16, 32, or 2. Threads' ranges start at multiples.
  std::size_t elementsPerWord() const;
  std::size_t compressedBytes(std::size_t count) const {
    return (count + elementsPerWord() - 1) / elementsPerWord() * 4;
  }

  // ---- Ranges. Pointers are to the range, not the array: a caller that cuts an array adds its
  // offset, which must be a multiple of elementsPerWord(), and compressedBytes(offset) to `codes`.

  /// Adds grad to residual, writes the codes, subtracts their values from residual.
  void compress(const float* grad, float* residual, std::uint8_t* codes, std::size_t count) const;
  void decompress(const std::uint8_t* codes, float* out, std::size_t count) const;
  /// compress and decompress without codes, for stores in one process. out may be grad.
  void quantize(const float* grad, float* residual, float* out, std::size_t count) const;

 private:
  /// For float16 and bfloat16.
  DType halfType() const;

  CompressionType type_;
  float threshold_;
};

}  // namespace gradlink
