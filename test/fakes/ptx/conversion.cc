// cvt: all but the small floats of 8 bits.
#include <cmath>
#include <limits>

#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

float floatOfHalf(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t rest = half & 0x7fffU;
  if (rest > 0x7c00) return std::bit_cast<float>(0x7fffffffU);
  if (rest == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U);
  // The product is exact, of denormals too.
  const float value = std::bit_cast<float>(rest << 13) * 0x1p112F;
  return sign != 0 ? -value : value;
}

/// To the nearest, ties to even: what is added to the bits carries into the exponent where it must.
std::uint16_t halfOfFloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest >= 0x477ff000) return sign | 0x7c00;
  if (rest < 0x38800000) {
    const double units = std::nearbyint(std::bit_cast<float>(rest) * 0x1p24);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(units));
  }
  const std::uint32_t rounded = rest - 0x38000000 + 0xfff + (rest >> 13 & 1);
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

void fromHalf(Thread& thread, const Instruction& i) {
  put(thread, i.to[0], floatOfHalf(get<std::uint16_t>(thread, i.from[0])));
}
void toHalf(Thread& thread, const Instruction& i) {
  put(thread, i.to[0], halfOfFloat(get<float>(thread, i.from[0])));
}
void fromBfloat(Thread& thread, const Instruction& i) {
  thread.registers[i.to[0]] = std::uint32_t{get<std::uint16_t>(thread, i.from[0])} << 16;
}
void toBfloat(Thread& thread, const Instruction& i) {
  const auto bits = get<std::uint32_t>(thread, i.from[0]);
  const bool number = (bits & 0x7fffffffU) <= 0x7f800000U;
  put(thread, i.to[0],
      static_cast<std::uint16_t>(number ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fffU));
}

template <class To, class From>
void plain(Thread& thread, const Instruction& i) {
  const From value = get<From>(thread, i.from[0]);
  auto result = static_cast<To>(value);
  if constexpr (std::is_same_v<To, float>) {
    if (result != result) result = std::bit_cast<float>(0x7fffffffU);
  }
  put<To>(thread, i.to[0], result);
}

enum class Round { nearest, zero, down, up };
template <Round round, class T>
T rounded(T value) {
  if constexpr (round == Round::nearest) return std::nearbyint(value);
  if constexpr (round == Round::zero) return std::trunc(value);
  if constexpr (round == Round::down) return std::floor(value);
  return std::ceil(value);
}

/// Beyond what the integer holds it is the nearest that it does.
template <class To, class From, Round round>
void toInteger(Thread& thread, const Instruction& i) {
  const From value = rounded<round>(get<From>(thread, i.from[0]));
  constexpr bool kWide = sizeof(To) == 8 || sizeof(From) == 8;
  const From limit = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  To result = 0;
  if (value != value) {
    result = kWide ? static_cast<To>(std::uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
  } else if (value >= limit) {
    result = std::numeric_limits<To>::max();
  } else if (value <= static_cast<From>(std::numeric_limits<To>::min())) {
    result = std::numeric_limits<To>::min();
  } else {
    result = static_cast<To>(value);
  }
  put<To>(thread, i.to[0], result);
}
template <class T, Round round>
void toWhole(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], rounded<round>(get<T>(thread, i.from[0])));
}

template <Round round>
Operation roundedOf(std::string_view to, std::string_view from) {
  return byFloat(from, [&](auto of) -> Operation {
    using From = decltype(of);
    if (to == from) return &toWhole<From, round>;
    return byInteger(to,
                     [](auto out) -> Operation { return &toInteger<decltype(out), From, round>; });
  });
}

Operation plainOf(std::string_view to, std::string_view from) {
  return byNumber(from, [&](auto of) -> Operation {
    using From = decltype(of);
    return byNumber(to, [](auto out) -> Operation { return &plain<decltype(out), From>; });
  });
}

}  // namespace

Operation conversionOf(const Parts& parts) {
  if (parts[0] != "cvt" || parts.size() < 3 || parts.size() > 4) return nullptr;
  const std::string_view how = parts.size() == 4 ? parts[1] : "";
  const std::string_view to = parts[parts.size() - 2];
  const std::string_view from = parts.back();
  const bool floats = from.starts_with('f') && to.starts_with('f');
  if (how.empty()) {
    if (to == "f32" && from == "f16") return &fromHalf;
    if (to == "f32" && from == "bf16") return &fromBfloat;
    const bool integers = !from.starts_with('f') && !to.starts_with('f');
    return integers || (to == "f64" && from == "f32") ? plainOf(to, from) : nullptr;
  }
  if (how == "rn") {
    if (to == "f16" && from == "f32") return &toHalf;
    if (to == "bf16" && from == "f32") return &toBfloat;
    if (floats && to == from) return nullptr;
    return to.starts_with('f') ? plainOf(to, from) : nullptr;
  }
  if (how == "rni") return roundedOf<Round::nearest>(to, from);
  if (how == "rzi") return roundedOf<Round::zero>(to, from);
  if (how == "rmi") return roundedOf<Round::down>(to, from);
  if (how == "rpi") return roundedOf<Round::up>(to, from);
  return nullptr;
}

}  // namespace gradlink::fake::ptx
