// Gradient compression on a GPU: 2bit and 1bit as kvstore/compression.h defines them, to the same
// bits. All arrays are float32, codes are bytes in whole 32-bit words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/kernels.h"

namespace gradlink::cuda {

enum class CodeBits : std::uint8_t { one = 1, two = 2 };

/// residual += grad; codes = what is sent; residual -= what the codes mean.
struct CompressTask {
  const float* grad;
  float* residual;
  std::uint8_t* codes;
  std::size_t count;
};
/// out = what the codes mean.
struct DecompressTask {
  const std::uint8_t* codes;
  float* out;
  std::size_t count;
};
/// Both at once, without the codes. `out` may be `grad`.
struct QuantizeTask {
  const float* grad;
  float* residual;
  float* out;
  std::size_t count;
};

/// Bytes of codes for `count` elements.
constexpr std::size_t codeBytes(CodeBits bits, std::size_t count) {
  const std::size_t elementsPerWord = bits == CodeBits::two ? 16 : 32;
  return (count + elementsPerWord - 1) / elementsPerWord * 4;
}

/// All tasks in one launch; no two may share an array. The threshold is used by 1bit's choice and
/// is what 2bit sends.
void compress(Stream&, TaskRing&, CodeBits, float threshold, std::span<const CompressTask>);
void decompress(Stream&, TaskRing&, CodeBits, float threshold, std::span<const DecompressTask>);
void quantize(Stream&, TaskRing&, CodeBits, float threshold, std::span<const QuantizeTask>);

}  // namespace gradlink::cuda
