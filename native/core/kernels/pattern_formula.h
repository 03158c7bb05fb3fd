// Elements of test data (see measure/pattern.h), for the host's loops and GPU kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"
#include "core/kernels/formula.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::kernels {

/// A finalizer of the splitmix family: every output bit depends on every input bit.
GRADLINK_FORMULA std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Of each element type:
// Exact: what values are handled in: double for floats, 64 bits modulo 2^64 (sign-extended) for
// integers. kLimit: whole numbers up to this are exact, or about half of what an integer type
// holds. kFactors: factors of 2 or 1/2 that a product can hold and stay a normal number.

struct FloatPattern {
  using Exact = double;
  static constexpr bool kFloat = true;
  static constexpr bool kSigned = true;
};
struct PatternFloat32 : FloatPattern {
  using Memory = std::uint32_t;
  static constexpr std::uint64_t kLimit = 1u << 24;
  static constexpr std::uint64_t kFactors = 120;
  static GRADLINK_FORMULA Memory encode(double x) { return bitsOf(static_cast<float>(x)); }
};
struct PatternFloat64 : FloatPattern {
  using Memory = std::uint64_t;
  static constexpr std::uint64_t kLimit = std::uint64_t{1} << 53;
  static constexpr std::uint64_t kFactors = 1000;
  static GRADLINK_FORMULA Memory encode(double x) { return bitsOf(x); }
};
/// For float32: the sign, and fewer exponents and digits. Only normal numbers of the type.
template <class Bits, int mantissaBits, std::uint32_t bias, std::uint64_t factors>
struct PatternOfFewBits : FloatPattern {
  using Memory = Bits;
  static constexpr std::uint64_t kLimit = 2u << mantissaBits;
  static constexpr std::uint64_t kFactors = factors;
  static GRADLINK_FORMULA Memory encode(double x) {
    constexpr unsigned kBits = 8 * sizeof(Memory);
    const std::uint32_t bits = bitsOf(static_cast<float>(x));
    const std::uint32_t sign = (bits >> (32 - kBits)) & (1u << (kBits - 1));
    const std::uint32_t size = bits & 0x7fffffffu;
    if (size == 0) return static_cast<Memory>(sign);
    return static_cast<Memory>(sign | (size - ((127u - bias) << 23)) >> (23 - mantissaBits));
  }
};
using PatternFloat16 = PatternOfFewBits<std::uint16_t, 10, 15, 11>;
using PatternBfloat16 = PatternOfFewBits<std::uint16_t, 7, 127, 120>;
using PatternFloat8e4m3 = PatternOfFewBits<std::uint8_t, 3, 7, 6>;
using PatternFloat8e5m2 = PatternOfFewBits<std::uint8_t, 2, 15, 13>;

template <class Unsigned, bool isSigned>
struct IntegerPattern {
  using Exact = std::uint64_t;
  using Memory = Unsigned;
  static constexpr bool kFloat = false;
  static constexpr bool kSigned = isSigned;
  static constexpr unsigned kUnusedBits = 64 - 8 * sizeof(Memory);
  static constexpr std::uint64_t kLimit =
      (std::uint64_t{1} << (8 * sizeof(Memory) - (isSigned ? 1 : 0) - 1)) - 1;
  static constexpr std::uint64_t kFactors = 120;
  static GRADLINK_FORMULA Memory encode(std::uint64_t x) { return static_cast<Memory>(x); }
  /// Truncates x to the type and sign-extends it.
  static GRADLINK_FORMULA std::uint64_t extend(std::uint64_t x) {
    if constexpr (isSigned) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x << kUnusedBits) >> kUnusedBits);
    } else {
      return static_cast<Memory>(x);
    }
  }
};

/// Calls `call` with a tag value of the element type's pattern.
template <class Call>
GRADLINK_FORMULA auto withPattern(DType dtype, Call call) {
  switch (dtype) {
    case DType::int8:
      return call(IntegerPattern<std::uint8_t, true>{});
    case DType::uint8:
      return call(IntegerPattern<std::uint8_t, false>{});
    case DType::int32:
      return call(IntegerPattern<std::uint32_t, true>{});
    case DType::uint32:
      return call(IntegerPattern<std::uint32_t, false>{});
    case DType::int64:
      return call(IntegerPattern<std::uint64_t, true>{});
    case DType::uint64:
      return call(IntegerPattern<std::uint64_t, false>{});
    case DType::float16:
      return call(PatternFloat16{});
    case DType::bfloat16:
      return call(PatternBfloat16{});
    case DType::float32:
      return call(PatternFloat32{});
    case DType::float8e4m3:
      return call(PatternFloat8e4m3{});
    case DType::float8e5m2:
      return call(PatternFloat8e5m2{});
    case DType::int16:
      return call(IntegerPattern<std::uint16_t, true>{});
    case DType::float64:
      break;
  }
  return call(PatternFloat64{});
}

/// The values of one element type for one op over `size` ranks.
template <class P>
class Pattern {
 public:
  using Exact = typename P::Exact;

  GRADLINK_FORMULA Pattern(ReduceOp op, std::uint64_t size, std::uint64_t seed)
      : op_(op), size_(size), seed_(mix(seed + 1)) {
    if (op_ == ReduceOp::prod) {
      active_ = size_ < P::kFactors ? size_ : P::kFactors;
      return;
    }
    const bool adds = op_ == ReduceOp::sum || op_ == ReduceOp::avg;
    // Averages of floats are whole if every summand is a multiple of the number of ranks.
    if (op_ == ReduceOp::avg && P::kFloat) unit_ = size_;
    active_ = size_;
    if (adds && P::kLimit / unit_ < size_) active_ = P::kLimit / unit_;
    amplitude_ = active_ == 0 ? 0 : P::kLimit / unit_ / (adds ? active_ : 1);
  }

  GRADLINK_FORMULA Exact input(std::uint64_t index, std::uint64_t rank) const {
    const std::uint64_t h = mix(index * 0x9e3779b97f4a7c15u + seed_ + rank * 0xd1342543de82ef95u);
    if constexpr (P::kFloat) {
      if (op_ == ReduceOp::prod) return factor(h, index, rank);
      if (!isActive(index, rank)) return 0;
      return static_cast<double>(static_cast<std::int64_t>(spread(h))) * static_cast<double>(unit_);
    } else {
      // Wrapping keeps every value valid, except for avg: a wrapped sum has no meaning.
      if (op_ == ReduceOp::prod) return h | 1;
      if (op_ == ReduceOp::avg) return isActive(index, rank) ? spread(h) : 0;
      return P::extend(h);
    }
  }

  GRADLINK_FORMULA Exact reduction(std::uint64_t index, std::uint64_t ranks) const {
    Exact result = input(index, 0);
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t rank = 1; rank < ranks; ++rank) result = fold(result, input(index, rank));
    if (op_ != ReduceOp::avg) return result;
    if constexpr (P::kFloat) {
      return result / static_cast<double>(size_);
    } else if constexpr (P::kSigned) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(result) /
                                        static_cast<std::int64_t>(size_));
    } else {
      return result / size_;
    }
  }

 private:
  GRADLINK_FORMULA bool isActive(std::uint64_t index, std::uint64_t rank) const {
    return active_ == size_ || (index + rank) % size_ < active_;
  }
  /// From -amplitude to amplitude, or from 0 for unsigned types; two's complement.
  GRADLINK_FORMULA std::uint64_t spread(std::uint64_t h) const {
    if constexpr (P::kSigned) {
      return multiplyHigh(h, 2 * amplitude_ + 1) - amplitude_;
    } else {
      return multiplyHigh(h, amplitude_ + 1);
    }
  }
  GRADLINK_FORMULA double factor(std::uint64_t h, std::uint64_t index, std::uint64_t rank) const {
    double value = (h & 1) != 0 ? -1 : 1;
    if (isActive(index, rank)) value *= (h & 2) != 0 ? 2 : 0.5;
    // One rank contributes fraction digits: 1.25, 1.5 or 1.75.
    if ((index + rank) % size_ == 0) value *= 1 + 0.25 * static_cast<double>(multiplyHigh(h, 4));
    return value;
  }
  GRADLINK_FORMULA Exact fold(Exact a, Exact b) const {
    switch (op_) {
      case ReduceOp::prod:
        return a * b;
      case ReduceOp::min:
        return less(b, a) ? b : a;
      case ReduceOp::max:
        return less(a, b) ? b : a;
      case ReduceOp::sum:
      case ReduceOp::avg:
        break;
    }
    return a + b;
  }
  static GRADLINK_FORMULA bool less(Exact a, Exact b) {
    if constexpr (!P::kFloat && P::kSigned) {
      return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
    } else {
      return a < b;
    }
  }

  ReduceOp op_;
  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t unit_ = 1;
  std::uint64_t active_ = 1;
  std::uint64_t amplitude_ = 0;
};

}  // namespace gradlink::kernels
