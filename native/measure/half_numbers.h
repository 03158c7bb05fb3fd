// Conversions of single float16 and bfloat16 bit patterns.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gradlink::measure {

inline float fromFloat16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t rest = (half & 0x7fffu) << 13;
  if ((half & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | rest | 0x7f800000u);
  // 112 is the difference of the exponents' biases; the product normalizes subnormals.
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f));
}

inline float fromBFloat16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// To nearest, ties to even. For numbers up to 1, which neither overflow nor are NaN.
inline std::uint16_t toFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const float size = std::fabs(value);
  if (size < 0x1p-14f) {  // subnormal: units of 2^-24
    return static_cast<std::uint16_t>(sign |
                                      static_cast<std::uint32_t>(std::lrintf(size * 0x1p24f)));
  }
  const std::uint32_t rebiased = (bits & 0x7fffffffu) - (112u << 23);
  return static_cast<std::uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
}

/// The same.
inline std::uint16_t toBFloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace gradlink::measure
