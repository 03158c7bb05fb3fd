#include "nccl/float8.h"

#include <array>
#include <cmath>
#include <limits>

namespace gradlink::fake {
namespace {

constexpr int kPatterns = 128;  // without the sign
constexpr std::uint8_t kSign = 0x80;

struct Layout {
  int mantissaBits;
  int bias;
  int patterns;  // of finite numbers
};

constexpr Layout layoutOf(Float8 format) {
  return format == Float8::e4m3 ? Layout{3, 7, 0x7f} : Layout{2, 15, 0x7c};
}

float numberOf(Float8 format, int bits) {
  const Layout layout = layoutOf(format);
  if (bits >= layout.patterns) {
    return format == Float8::e5m2 && bits == layout.patterns
               ? std::numeric_limits<float>::infinity()
               : std::numeric_limits<float>::quiet_NaN();
  }
  const int one = 1 << layout.mantissaBits;
  const int exponent = bits >> layout.mantissaBits;
  const int mantissa = bits & (one - 1);
  return exponent == 0
             ? std::ldexp(static_cast<float>(mantissa), 1 - layout.bias - layout.mantissaBits)
             : std::ldexp(static_cast<float>(one + mantissa),
                          exponent - layout.bias - layout.mantissaBits);
}

const std::array<float, kPatterns>& numbersOf(Float8 format) {
  static const auto make = [](Float8 of) {
    std::array<float, kPatterns> all{};
    for (int bits = 0; bits < kPatterns; ++bits) {
      all[static_cast<std::size_t>(bits)] = numberOf(of, bits);
    }
    return all;
  };
  static const std::array<float, kPatterns> e4m3 = make(Float8::e4m3);
  static const std::array<float, kPatterns> e5m2 = make(Float8::e5m2);
  return format == Float8::e4m3 ? e4m3 : e5m2;
}

}  // namespace

void widen(Float8 format, const std::uint8_t* from, float* to, std::size_t count) {
  const auto& numbers = numbersOf(format);
  for (std::size_t i = 0; i < count; ++i) {
    const float number = numbers[from[i] & (kSign - 1)];
    to[i] = (from[i] & kSign) != 0 ? -number : number;
  }
}

void narrow(Float8 format, const float* from, std::uint8_t* to, std::size_t count) {
  const auto& numbers = numbersOf(format);
  const int finite = layoutOf(format).patterns;
  for (std::size_t i = 0; i < count; ++i) {
    const float size = std::fabs(from[i]);
    int best = std::isnan(size) ? kPatterns - 1 : finite - 1;
    // The patterns are in the order of their numbers.
    for (int bits = 0; bits + 1 < finite && !std::isnan(size); ++bits) {
      const float low = numbers[static_cast<std::size_t>(bits)];
      const float high = numbers[static_cast<std::size_t>(bits) + 1];
      if (size >= high) continue;
      const bool up = size - low > high - size || (size - low == high - size && bits % 2 == 1);
      best = up ? bits + 1 : bits;
      break;
    }
    to[i] = static_cast<std::uint8_t>(best | (std::signbit(from[i]) ? kSign : 0));
  }
}

}  // namespace gradlink::fake
