// Gradient compression: the formulas of kvstore/optimizer/simd/compression_loops.inc. A thread
// makes one byte of codes at a time (four elements of 2bit, eight of 1bit, the first in the top
// bits), so a warp accesses contiguous memory.
#pragma once

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// A residual that is not finite is sent as NaN and kept. The codes of 1bit cannot express it.
GRADLINK_DEVICE bool isNumber(float r) {
  constexpr float kMost = 3.402823466e38f;
  return r <= kMost && r >= -kMost;
}
GRADLINK_DEVICE float noNumber() { return floatOf(0x7fc00000u); }

struct TwoBit {
  static constexpr unsigned kPerByte = 4;
  static constexpr unsigned kPerWord = 16;
  static GRADLINK_DEVICE float sent(float r, float threshold) {
    const float up = r >= threshold ? threshold : 0.0f;
    return r <= -threshold ? -threshold : up;
  }
  static GRADLINK_DEVICE std::uint32_t code(float r, float threshold, unsigned place) {
    const std::uint32_t up = r >= threshold ? 3u : 0u;
    const std::uint32_t code = r <= -threshold ? 2u : up;
    return (isNumber(r) ? code : 1u) << (6 - 2 * place);
  }
  static GRADLINK_DEVICE float meaning(std::uint32_t codes, float threshold, unsigned place) {
    const std::uint32_t code = (codes >> (6 - 2 * place)) & 3u;
    const float up = code == 3u ? threshold : 0.0f;
    const float meant = code == 2u ? -threshold : up;
    return code == 1u ? noNumber() : meant;
  }
};

struct OneBit {
  static constexpr unsigned kPerByte = 8;
  static constexpr unsigned kPerWord = 32;
  static GRADLINK_DEVICE float sent(float r, float threshold) {
    return r > threshold ? 1.0f : -1.0f;
  }
  static GRADLINK_DEVICE std::uint32_t code(float r, float threshold, unsigned place) {
    return (r > threshold ? 1u : 0u) << (7 - place);
  }
  static GRADLINK_DEVICE float meaning(std::uint32_t codes, float, unsigned place) {
    return ((codes >> (7 - place)) & 1u) != 0 ? 1.0f : -1.0f;
  }
};

template <unsigned count>
GRADLINK_DEVICE void loadFloats(const float* from, bool vectors, unsigned there, float* out) {
  if (vectors && there == count) {
    GRADLINK_UNROLL
    for (unsigned v = 0; v < count / 4; ++v) {
      Float32::unpack(reinterpret_cast<const Vector*>(from)[v], out + 4 * v);
    }
    return;
  }
  GRADLINK_UNROLL
  for (unsigned i = 0; i < count; ++i) out[i] = i < there ? from[i] : 0.0f;
}

template <unsigned count>
GRADLINK_DEVICE void storeFloats(float* to, bool vectors, unsigned there, const float* in) {
  if (vectors && there == count) {
    GRADLINK_UNROLL
    for (unsigned v = 0; v < count / 4; ++v) {
      reinterpret_cast<Vector*>(to)[v] = Float32::pack(in + 4 * v);
    }
    return;
  }
  GRADLINK_UNROLL
  for (unsigned i = 0; i < count; ++i) {
    if (i < there) to[i] = in[i];
  }
}

/// Writes codes if `codes` is set, and their values if `out` is.
template <class Bits>
GRADLINK_DEVICE void compressByte(const CodeData& task, std::uint64_t byte, float threshold) {
  constexpr unsigned kCount = Bits::kPerByte;
  const std::uint64_t at = byte * kCount;
  const std::uint64_t rest = at < task.count ? task.count - at : 0;
  const unsigned there = rest < kCount ? static_cast<unsigned>(rest) : kCount;
  const bool vectors = task.aligned != 0;
  float grad[kCount];
  float residual[kCount];
  loadFloats<kCount>(task.grad + at, vectors, there, grad);
  loadFloats<kCount>(task.residual + at, vectors, there, residual);
  std::uint32_t codes = 0;
  GRADLINK_UNROLL
  for (unsigned i = 0; i < kCount; ++i) {
    const float r = residual[i] + grad[i];
    const float sent = Bits::sent(r, threshold);
    grad[i] = isNumber(r) ? sent : noNumber();
    residual[i] = isNumber(r) ? r - sent : residual[i];
    if (i < there) codes |= Bits::code(r, threshold, i);
  }
  storeFloats<kCount>(task.residual + at, vectors, there, residual);
  if (task.codes != nullptr) task.codes[byte] = static_cast<std::uint8_t>(codes);
  if (task.out != nullptr) storeFloats<kCount>(task.out + at, vectors, there, grad);
}

template <class Bits>
GRADLINK_DEVICE void decompressByte(const CodeData& task, std::uint64_t byte, float threshold) {
  constexpr unsigned kCount = Bits::kPerByte;
  const std::uint64_t at = byte * kCount;
  if (at >= task.count) return;
  const std::uint64_t rest = task.count - at;
  const unsigned there = rest < kCount ? static_cast<unsigned>(rest) : kCount;
  const std::uint32_t codes = task.codes[byte];
  float out[kCount];
  GRADLINK_UNROLL
  for (unsigned i = 0; i < kCount; ++i) out[i] = Bits::meaning(codes, threshold, i);
  storeFloats<kCount>(task.out + at, task.aligned != 0, there, out);
}

/// Up to the end of the last 32-bit word, padded with zeros.
template <class Bits, void (*each)(const CodeData&, std::uint64_t, float)>
GRADLINK_DEVICE void codeTile(const CodeData* tasks, std::uint32_t count, float threshold) {
  const CodeData task = tasks[taskAt(tasks, count, &CodeData::firstTile, blockIdx.x)];
  const std::uint64_t bytes = (task.count + Bits::kPerWord - 1) / Bits::kPerWord * 4;
  const std::uint64_t begin = (blockIdx.x - task.firstTile) * kCodeTile;
  GRADLINK_KEEP_ROLLED
  for (unsigned i = 0; i < kCodeTile / kThreads; ++i) {
    const std::uint64_t byte = begin + i * kThreads + threadIdx.x;
    if (byte < bytes) each(task, byte, threshold);
  }
}

#define GRADLINK_CODES(name, Bits, each)                                              \
  GRADLINK_KERNEL name(const CodeData* tasks, std::uint32_t count, float threshold) { \
    codeTile<Bits, each<Bits>>(tasks, count, threshold);                              \
  }
GRADLINK_CODES(gradlinkCompress2, TwoBit, compressByte)
GRADLINK_CODES(gradlinkCompress1, OneBit, compressByte)
GRADLINK_CODES(gradlinkDecompress2, TwoBit, decompressByte)
GRADLINK_CODES(gradlinkDecompress1, OneBit, decompressByte)
#undef GRADLINK_CODES

}  // namespace gradlink::kernels
