// Test data's element types (see measure/pattern.h).
#pragma once

#include <cstdint>

#include "core/kernels/dtype.h"

namespace gradlink::kernels {

/// What a pattern depends on of an element type.
struct PatternType {
  /// Whole numbers up to this are exact; about half of what an integer type holds.
  std::uint64_t limit;
  /// Factors of 2 or 1/2 that a product can hold and stay a normal number.
  std::uint64_t factors;
  std::uint32_t bytes;
  bool isFloat;
  bool isSigned;
  /// Of a float below 64 bits: of its fraction, and of its exponent.
  std::uint8_t digits;
  std::uint8_t bias;
};

constexpr PatternType patternInteger(std::uint32_t bytes, bool isSigned) {
  const std::uint32_t bits = 8 * bytes - (isSigned ? 1 : 0);
  return {(std::uint64_t{1} << (bits - 1)) - 1, 120, bytes, false, isSigned, 0, 0};
}
constexpr PatternType patternFloat(std::uint32_t bytes, std::uint8_t digits, std::uint8_t bias,
                                   std::uint64_t factors) {
  return {std::uint64_t{2} << digits, factors, bytes, true, true, digits, bias};
}

constexpr PatternType patternType(DType dtype) {
  switch (dtype) {
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      return patternInteger(static_cast<std::uint32_t>(sizeOf(dtype)), true);
    case DType::uint8:
    case DType::uint32:
    case DType::uint64:
      return patternInteger(static_cast<std::uint32_t>(sizeOf(dtype)), false);
    case DType::float16:
      return patternFloat(2, 10, 15, 11);
    case DType::bfloat16:
      return patternFloat(2, 7, 127, 120);
    case DType::float32:
      return patternFloat(4, 23, 127, 120);
    case DType::float8e4m3:
      return patternFloat(1, 3, 7, 6);
    case DType::float8e5m2:
      return patternFloat(1, 2, 15, 13);
    case DType::float64:
      break;
  }
  return patternFloat(8, 52, 0, 1000);
}

}  // namespace gradlink::kernels
