// Element types in kernels: unpacking, adding and packing vectors of 16 bytes.
#pragma once

#include "cuda/kernels/language.h"

namespace gradlink::kernels {

GRADLINK_DEVICE float fromBfloat16(std::uint16_t half) {
  return floatOf(static_cast<std::uint32_t>(half) << 16);
}
GRADLINK_DEVICE std::uint16_t toBfloat16(float x) {
  const std::uint32_t bits = bitsOf(x);
  const std::uint32_t roundedBits = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool isNan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(isNan ? (bits >> 16) | 0x40u : roundedBits);
}

/// Four bytes a word, added without carries between them. A single element is a word's low byte.
struct Int8 {
  using Memory = std::uint8_t;
  using Wide = std::uint32_t;
  static constexpr unsigned kWides = 4;
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) {
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
    out[3] = v.w;
  }
  static GRADLINK_DEVICE Vector pack(const Wide* in) { return {in[0], in[1], in[2], in[3]}; }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) {
    return ((a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu)) ^ ((a ^ b) & 0x80808080u);
  }
  static GRADLINK_DEVICE Wide widen(Memory x) { return x; }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return static_cast<Memory>(x); }
};

struct Int32 {
  using Memory = std::uint32_t;
  using Wide = std::uint32_t;
  static constexpr unsigned kWides = 4;
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) { Int8::unpack(v, out); }
  static GRADLINK_DEVICE Vector pack(const Wide* in) { return Int8::pack(in); }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) { return a + b; }
  static GRADLINK_DEVICE Wide widen(Memory x) { return x; }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return x; }
};

GRADLINK_DEVICE std::uint64_t joined(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}
GRADLINK_DEVICE std::uint32_t lowOf(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
GRADLINK_DEVICE std::uint32_t highOf(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

struct Int64 {
  using Memory = std::uint64_t;
  using Wide = std::uint64_t;
  static constexpr unsigned kWides = 2;
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) {
    out[0] = joined(v.x, v.y);
    out[1] = joined(v.z, v.w);
  }
  static GRADLINK_DEVICE Vector pack(const Wide* in) {
    return {lowOf(in[0]), highOf(in[0]), lowOf(in[1]), highOf(in[1])};
  }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) { return a + b; }
  static GRADLINK_DEVICE Wide widen(Memory x) { return x; }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return x; }
};

/// Eight halves; Half converts one to float32 and back.
template <class Half>
struct HalfFloat {
  using Memory = std::uint16_t;
  using Wide = float;
  static constexpr unsigned kWides = 8;
  static GRADLINK_DEVICE Wide widen(Memory x) { return Half::widen(x); }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return Half::narrow(x); }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) { return a + b; }
  static GRADLINK_DEVICE void unpackWord(std::uint32_t word, Wide* out) {
    out[0] = widen(static_cast<Memory>(word));
    out[1] = widen(static_cast<Memory>(word >> 16));
  }
  static GRADLINK_DEVICE std::uint32_t packWord(const Wide* in) {
    return narrow(in[0]) | static_cast<std::uint32_t>(narrow(in[1])) << 16;
  }
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) {
    unpackWord(v.x, out);
    unpackWord(v.y, out + 2);
    unpackWord(v.z, out + 4);
    unpackWord(v.w, out + 6);
  }
  static GRADLINK_DEVICE Vector pack(const Wide* in) {
    return {packWord(in), packWord(in + 2), packWord(in + 4), packWord(in + 6)};
  }
};

struct Ieee {
  static GRADLINK_DEVICE float widen(std::uint16_t x) { return fromFloat16(x); }
  static GRADLINK_DEVICE std::uint16_t narrow(float x) { return toFloat16(x); }
};
struct Brain {
  static GRADLINK_DEVICE float widen(std::uint16_t x) { return fromBfloat16(x); }
  static GRADLINK_DEVICE std::uint16_t narrow(float x) { return toBfloat16(x); }
};
using Float16 = HalfFloat<Ieee>;
using Bfloat16 = HalfFloat<Brain>;

struct Float32 {
  using Memory = float;
  using Wide = float;
  static constexpr unsigned kWides = 4;
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) {
    out[0] = floatOf(v.x);
    out[1] = floatOf(v.y);
    out[2] = floatOf(v.z);
    out[3] = floatOf(v.w);
  }
  static GRADLINK_DEVICE Vector pack(const Wide* in) {
    return {bitsOf(in[0]), bitsOf(in[1]), bitsOf(in[2]), bitsOf(in[3])};
  }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) { return a + b; }
  static GRADLINK_DEVICE Wide widen(Memory x) { return x; }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return x; }
};

struct Float64 {
  using Memory = double;
  using Wide = double;
  static constexpr unsigned kWides = 2;
  static GRADLINK_DEVICE void unpack(const Vector& v, Wide* out) {
    out[0] = doubleOf(joined(v.x, v.y));
    out[1] = doubleOf(joined(v.z, v.w));
  }
  static GRADLINK_DEVICE Vector pack(const Wide* in) {
    const std::uint64_t first = bitsOf(in[0]);
    const std::uint64_t second = bitsOf(in[1]);
    return {lowOf(first), highOf(first), lowOf(second), highOf(second)};
  }
  static GRADLINK_DEVICE Wide add(Wide a, Wide b) { return a + b; }
  static GRADLINK_DEVICE Wide widen(Memory x) { return x; }
  static GRADLINK_DEVICE Memory narrow(Wide x) { return x; }
};

/// The index of a tile's (or block's) task: the last one that starts at or before it.
template <class Data>
GRADLINK_DEVICE std::uint32_t taskAt(const Data* tasks, std::uint32_t count,
                                     std::uint64_t Data::*first, std::uint64_t at) {
  std::uint32_t low = 0;
  std::uint32_t high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (tasks[middle].*first <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace gradlink::kernels
