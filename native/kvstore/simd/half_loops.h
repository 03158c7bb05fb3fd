// float16 and bfloat16 to and from float32, without branches so that the loops vectorise: round to
// nearest even, subnormals kept, NaN stays NaN. Included by one file a SIMD level.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink {
namespace {

inline std::uint32_t bitsOf(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float floatOf(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

void fromFloat16(const std::uint16_t* __restrict in, float* __restrict out, std::size_t count) {
  // Subnormal halves go through an integer conversion: as float32 subnormals they would take the
  // processor's slow path, and small gradients are full of them.
  const float unit = floatOf(0x33800000u);  // 2^-24
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t half = in[i];
    const std::uint32_t magnitude = half & 0x7fffu;
    const std::uint32_t tiny =
        bitsOf(static_cast<float>(static_cast<std::int32_t>(magnitude)) * unit);
    std::uint32_t bits = magnitude < 0x400u ? tiny : (magnitude << 13) + 0x38000000u;
    bits = magnitude >= 0x7c00u ? (magnitude << 13) | 0x7f800000u : bits;
    out[i] = floatOf(bits | ((half & 0x8000u) << 16));
  }
}

void toFloat16(const float* __restrict in, std::uint16_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = bitsOf(in[i]);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    // Normal halves: rebase the exponent and round to even by adding just under half a unit, plus
    // the odd bit.
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
    // Subnormal halves: adding 0.5 lets the float adder do the shift and the rounding.
    const std::uint32_t tiny = bitsOf(floatOf(magnitude) + 0.5f) - 0x3f000000u;
    const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    std::uint32_t half = magnitude < 0x38800000u ? tiny : normal;
    half = magnitude >= 0x47800000u ? special : half;
    out[i] = static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000u));
  }
}

void fromBfloat16(const std::uint16_t* __restrict in, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = floatOf(static_cast<std::uint32_t>(in[i]) << 16);
  }
}

void toBfloat16(const float* __restrict in, std::uint16_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = bitsOf(in[i]);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40u;
    out[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

}  // namespace
}  // namespace gradlink
