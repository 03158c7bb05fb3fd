// Gradient compression on a GPU: 2bit and 1bit of kvstore/base/compression.h, with the same bits.
// All arrays are float32; codes are whole 32-bit words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/kernels.h"

namespace gradlink::cuda {

enum class CodeBits : std::uint8_t { one = 1, two = 2 };

/// residual += grad; codes = compressed residual; residual -= decompressed codes.
struct CompressTask {
  const float* grad;
  float* residual;
  std::uint8_t* codes;
  std::size_t count;
};
/// out = decompressed codes.
struct DecompressTask {
  const std::uint8_t* codes;
  float* out;
  std::size_t count;
};
/// Both at once, without codes. `out` may be `grad`.
struct QuantizeTask {
  const float* grad;
  float* residual;
  float* out;
  std::size_t count;
};

constexpr std::size_t codeBytes(CodeBits bits, std::size_t count) {
  const std::size_t elementsPerWord = bits == CodeBits::two ? 16 : 32;
  return (count + elementsPerWord - 1) / elementsPerWord * 4;
}

/// All tasks in one launch; no two may share an array. 2bit sends the threshold, 1bit compares.
void compress(Stream&, TaskRing&, CodeBits, float threshold, std::span<const CompressTask>);
void decompress(Stream&, TaskRing&, CodeBits, float threshold, std::span<const DecompressTask>);
void quantize(Stream&, TaskRing&, CodeBits, float threshold, std::span<const QuantizeTask>);

}  // namespace gradlink::cuda
