// Elements of test data (see measure/pattern.h), for the host's loops and GPU kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/formula.h"
#include "core/kernels/pattern_type.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::kernels {

/// A finalizer of the splitmix family: every output bit depends on every input bit.
GRADLINK_FORMULA std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The values of one element type for one op over `size` ranks. Exact is double for floats; for
/// integers 64 bits modulo 2^64, sign-extended.
template <class Exact>
class Pattern {
 public:
  GRADLINK_FORMULA Pattern(const PatternType& type, ReduceOp op, std::uint64_t size,
                           std::uint64_t seed)
      : type_(type), op_(op), size_(size), seed_(mix(seed + 1)) {
    if (op_ == ReduceOp::prod) {
      active_ = size_ < type_.factors ? size_ : type_.factors;
      return;
    }
    const bool adds = op_ == ReduceOp::sum || op_ == ReduceOp::avg;
    // Averages of floats are whole if every summand is a multiple of the number of ranks.
    if (op_ == ReduceOp::avg && kFloat) unit_ = size_;
    active_ = size_;
    if (adds && type_.limit / unit_ < size_) active_ = type_.limit / unit_;
    amplitude_ = active_ == 0 ? 0 : type_.limit / unit_ / (adds ? active_ : 1);
  }

  /// The element's bits, in the low bytes. Of floats only zeros and normal numbers of the type.
  GRADLINK_FORMULA std::uint64_t encode(Exact x) const {
    if constexpr (kFloat) {
      if (type_.bytes == 8) return bitsOf(x);
      // A float32's sign, and fewer exponents and digits.
      const std::uint32_t bits = bitsOf(static_cast<float>(x));
      const std::uint32_t kept = 8 * type_.bytes;
      const std::uint32_t sign = (bits >> (32 - kept)) & (1u << (kept - 1));
      const std::uint32_t magnitude = bits & 0x7fffffffu;
      if (magnitude == 0) return sign;
      return sign | (magnitude - ((127u - type_.bias) << 23)) >> (23 - type_.digits);
    } else {
      return x;
    }
  }

  GRADLINK_FORMULA Exact input(std::uint64_t index, std::uint64_t rank) const {
    const std::uint64_t h = mix(index * 0x9e3779b97f4a7c15u + seed_ + rank * 0xd1342543de82ef95u);
    if constexpr (kFloat) {
      if (op_ == ReduceOp::prod) return factor(h, index, rank);
      if (!isActive(index, rank)) return 0;
      return static_cast<double>(static_cast<std::int64_t>(spread(h))) * static_cast<double>(unit_);
    } else {
      // Wrapping keeps every value valid, except for avg: a wrapped sum has no meaning.
      if (op_ == ReduceOp::prod) return h | 1;
      if (op_ == ReduceOp::avg) return isActive(index, rank) ? spread(h) : 0;
      return extended(h);
    }
  }

  GRADLINK_FORMULA Exact reduction(std::uint64_t index, std::uint64_t ranks) const {
    Exact result = input(index, 0);
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t rank = 1; rank < ranks; ++rank) result = fold(result, input(index, rank));
    if (op_ != ReduceOp::avg) return result;
    if constexpr (kFloat) {
      return result / static_cast<double>(size_);
    } else {
      if (!type_.isSigned) return result / size_;
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(result) /
                                        static_cast<std::int64_t>(size_));
    }
  }

 private:
  static constexpr bool kFloat = static_cast<Exact>(0.5) != 0;

  /// Truncated to the type and extended again.
  GRADLINK_FORMULA std::uint64_t extended(std::uint64_t x) const {
    const std::uint32_t unused = 64 - 8 * type_.bytes;
    if (!type_.isSigned) return x << unused >> unused;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x << unused) >> unused);
  }
  GRADLINK_FORMULA bool isActive(std::uint64_t index, std::uint64_t rank) const {
    return active_ == size_ || (index + rank) % size_ < active_;
  }
  /// From -amplitude to amplitude, or from 0 for unsigned types; two's complement.
  GRADLINK_FORMULA std::uint64_t spread(std::uint64_t h) const {
    if (!type_.isSigned) return multiplyHigh(h, amplitude_ + 1);
    return multiplyHigh(h, 2 * amplitude_ + 1) - amplitude_;
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
  GRADLINK_FORMULA bool less(Exact a, Exact b) const {
    if constexpr (!kFloat) {
      if (type_.isSigned) return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
    }
    return a < b;
  }

  PatternType type_;
  ReduceOp op_;
  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t unit_ = 1;
  std::uint64_t active_ = 1;
  std::uint64_t amplitude_ = 0;
};

}  // namespace gradlink::kernels
