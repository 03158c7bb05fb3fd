// Slow, plain arithmetic to hold the kernels against: one element at a time, no SIMD, no bit
// tricks.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// For GoogleTest.
inline void PrintTo(DType dtype, std::ostream* to) { *to << nameOf(dtype); }

}  // namespace gradlink

namespace gradlink::reference {

using Bytes = std::vector<std::uint8_t>;

/// float16 (exponentBits 5) or bfloat16 (8) to double, by the definition of the format.
inline double widen(std::uint16_t bits, int exponentBits) {
  const int mantissaBits = 15 - exponentBits;
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const int mantissa = bits & ((1 << mantissaBits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponentBits) - 1) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissaBits);
  return sign * std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits);
}

/// The values of the format from zero on, in the order of their bits; what follows the largest is
/// the next step as if the format went on.
template <int kExponentBits>
const double* magnitudes() {
  static const std::vector<double> kAll = [] {
    std::vector<double> all(((1 << kExponentBits) - 1) << (15 - kExponentBits));
    for (std::size_t bits = 0; bits < all.size(); ++bits) {
      all[bits] = widen(static_cast<std::uint16_t>(bits), kExponentBits);
    }
    all.push_back(std::ldexp(1.0, 1 << (kExponentBits - 1)));
    return all;
  }();
  return kAll.data();
}

/// The nearest value of the format, ties to the even one, found by bisection over all of them.
inline std::uint16_t narrow(double value, int exponentBits) {
  const int mantissaBits = 15 - exponentBits;
  const std::uint16_t infinity =
      static_cast<std::uint16_t>(((1 << exponentBits) - 1) << mantissaBits);
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | infinity;
  const double* const valueOf = exponentBits == 5 ? magnitudes<5>() : magnitudes<8>();
  int low = 0;
  int high = infinity;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (valueOf[middle] <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - valueOf[low];
  const double above = valueOf[high] - magnitude;
  const bool up = below > above || (below == above && (low & 1) != 0);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

using gradlink::isFloat;

template <class T>
T read(const void* array, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(array) + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void write(void* array, std::size_t i, T value) {
  std::memcpy(static_cast<std::uint8_t*>(array) + i * sizeof(T), &value, sizeof(T));
}

template <class T>
T foldFloat(T a, T b, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      return a < b ? a : b;
    case ReduceOp::max:
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      return a > b ? a : b;
  }
  return a;
}

/// Integers fold in 128 bits and are cut to T after every step.
template <class T>
T foldInteger(T a, T b, ReduceOp op) {
  __extension__ using Wide = unsigned __int128;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:  // averageIntegers() has those
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case ReduceOp::prod:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
  }
  return a;
}

template <class T>
void averageIntegers(void* out, std::span<const void* const> in, std::size_t i) {
  __extension__ using Wide = __int128;
  Wide sum = 0;
  for (const void* const array : in) {
    sum += read<T>(array, i);
    // 64 bits wrap as sums do.
    if constexpr (sizeof(T) == 8) sum = static_cast<T>(sum);
  }
  write<T>(out, i, static_cast<T>(sum / static_cast<Wide>(in.size())));
}

/// From the sum, or where that has overflowed from the arrays.
template <class T>
T average(T sum, std::span<const void* const> in, std::size_t i) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(sum)) return sum / static_cast<T>(in.size());
    constexpr double kScale = sizeof(T) == 8 ? 0x1p-64 : 1;
    double wide = 0;
    for (const void* const array : in) wide += static_cast<double>(read<T>(array, i)) * kScale;
    return static_cast<T>(wide / static_cast<double>(in.size()) / kScale);
  }
  return sum;
}

template <class T>
void reduceElement(void* out, std::span<const void* const> in, std::size_t i, ReduceOp op) {
  if constexpr (!std::is_floating_point_v<T>) {
    if (op == ReduceOp::avg) return averageIntegers<T>(out, in, i);
  }
  T result = read<T>(in[0], i);
  for (std::size_t s = 1; s < in.size(); ++s) {
    if constexpr (std::is_floating_point_v<T>) {
      result = foldFloat(result, read<T>(in[s], i), op);
    } else {
      result = foldInteger(result, read<T>(in[s], i), op);
    }
  }
  if (op == ReduceOp::avg) result = average(result, in, i);
  write<T>(out, i, result);
}

inline void reduceNarrow(void* out, std::span<const void* const> in, std::size_t i, ReduceOp op,
                         int exponentBits) {
  const auto at = [&](std::size_t s) {
    return static_cast<float>(widen(read<std::uint16_t>(in[s], i), exponentBits));
  };
  const auto fold = [&]<class T>(T) {
    T result = at(0);
    for (std::size_t s = 1; s < in.size(); ++s) result = foldFloat<T>(result, at(s), op);
    return op == ReduceOp::avg ? result / static_cast<T>(in.size()) : result;
  };
  const float result = fold(float{});
  // A partial result may have been beyond float32.
  const double value = std::isfinite(result) ? result : fold(double{});
  write(out, i, narrow(static_cast<float>(value), exponentBits));
}

/// What stands for halves where types are told apart.
template <int exponentBits>
struct Half {
  static constexpr int kExponentBits = exponentBits;
};
template <class T>
constexpr bool isHalfType = std::is_class_v<T>;

/// Calls f with a value of the type.
template <class F>
auto onType(DType dtype, F f) {
  switch (dtype) {
    case DType::int8:
      return f(std::int8_t{});
    case DType::uint8:
      return f(std::uint8_t{});
    case DType::int16:
      return f(std::int16_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::uint32:
      return f(std::uint32_t{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::uint64:
      return f(std::uint64_t{});
    case DType::float16:
      return f(Half<5>{});
    case DType::bfloat16:
      return f(Half<8>{});
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    default:
      throw std::logic_error(std::string("no reference for ") + nameOf(dtype));
  }
}

inline void put(void* array, std::size_t i, DType dtype, double value) {
  onType(dtype, [&]<class T>(T) {
    if constexpr (isHalfType<T>) {
      write(array, i, narrow(value, T::kExponentBits));
    } else {
      write(array, i, static_cast<T>(value));
    }
  });
}

inline double numberAt(const void* array, std::size_t i, DType dtype) {
  return onType(dtype, [&]<class T>(T) {
    if constexpr (isHalfType<T>) {
      return widen(read<std::uint16_t>(array, i), T::kExponentBits);
    } else {
      return static_cast<double>(read<T>(array, i));
    }
  });
}

inline void reduce(void* out, std::span<const void* const> in, std::size_t count, DType dtype,
                   ReduceOp op) {
  onType(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (isHalfType<T>) {
        reduceNarrow(out, in, i, op, T::kExponentBits);
      } else {
        reduceElement<T>(out, in, i, op);
      }
    }
  });
}

inline bool isNan(const void* array, std::size_t i, DType dtype) {
  return isFloat(dtype) && std::isnan(numberAt(array, i, dtype));
}

/// Empty where the arrays hold the same bits; one NaN is as good as another.
inline std::string difference(const void* got, const void* expected, std::size_t count,
                              DType dtype) {
  const std::size_t bytes = sizeOf(dtype);
  const auto* a = static_cast<const std::uint8_t*>(got);
  const auto* b = static_cast<const std::uint8_t*>(expected);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i * bytes, b + i * bytes, bytes) == 0) continue;
    if (isNan(got, i, dtype) && isNan(expected, i, dtype)) continue;
    std::string text = "element " + std::to_string(i) + ": bytes";
    for (std::size_t j = 0; j < bytes; ++j) text += " " + std::to_string(a[i * bytes + j]);
    text += ", expected";
    for (std::size_t j = 0; j < bytes; ++j) text += " " + std::to_string(b[i * bytes + j]);
    return text;
  }
  return "";
}

/// Random bits for a third of the elements (NaN, infinities and subnormals among them), moderate
/// values, so that sums round, for another, and small whole numbers, -0 and 1 for the rest.
inline Bytes randomArray(std::size_t count, DType dtype, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes array(count * sizeOf(dtype));
  for (std::uint8_t& byte : array) byte = static_cast<std::uint8_t>(random());
  if (!isFloat(dtype)) return array;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t kind = random() % 3;
    if (kind == 0) continue;
    double value = (static_cast<double>(random()) / 4294967296.0 - 0.5) * 8;
    if (kind == 2) value = random() % 8 == 0 ? -0.0 : std::floor(value);
    put(array.data(), i, dtype, value);
  }
  return array;
}

}  // namespace gradlink::reference
