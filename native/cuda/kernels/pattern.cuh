// Test data made and checked on the device: element by element what native/measure/pattern.h says.
#pragma once

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

GRADLINK_DEVICE std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Exact: what values are handled in: double for floats, 64 bits modulo 2^64 (sign-extended) for
/// integers. kLimit: whole numbers up to this are exact, or about half of what an integer type
/// holds. kFactors: factors of 2 or 1/2 that a product can hold.
struct FloatPattern {
  using Exact = double;
  static constexpr bool kFloat = true;
  static constexpr bool kSigned = true;
};
struct PatternFloat16 : FloatPattern {
  using Memory = std::uint16_t;
  static constexpr std::uint64_t kLimit = 1u << 11;
  static constexpr std::uint64_t kFactors = 11;
  static GRADLINK_DEVICE Memory encode(double x) { return toFloat16(static_cast<float>(x)); }
};
struct PatternBfloat16 : FloatPattern {
  using Memory = std::uint16_t;
  static constexpr std::uint64_t kLimit = 1u << 8;
  static constexpr std::uint64_t kFactors = 120;
  static GRADLINK_DEVICE Memory encode(double x) { return toBfloat16(static_cast<float>(x)); }
};
struct PatternFloat32 : FloatPattern {
  using Memory = std::uint32_t;
  static constexpr std::uint64_t kLimit = 1u << 24;
  static constexpr std::uint64_t kFactors = 120;
  static GRADLINK_DEVICE Memory encode(double x) { return bitsOf(static_cast<float>(x)); }
};
struct PatternFloat64 : FloatPattern {
  using Memory = std::uint64_t;
  static constexpr std::uint64_t kLimit = std::uint64_t{1} << 53;
  static constexpr std::uint64_t kFactors = 1000;
  static GRADLINK_DEVICE Memory encode(double x) { return bitsOf(x); }
};
/// Only numbers that the type has, none of them subnormal.
template <int mantissaBits, std::uint32_t bias, std::uint64_t factors>
struct PatternFloat8 : FloatPattern {
  using Memory = std::uint8_t;
  static constexpr std::uint64_t kLimit = 2u << mantissaBits;
  static constexpr std::uint64_t kFactors = factors;
  static GRADLINK_DEVICE Memory encode(double x) {
    const std::uint32_t bits = bitsOf(static_cast<float>(x));
    const std::uint32_t sign = (bits >> 24) & 0x80u;
    const std::uint32_t size = bits & 0x7fffffffu;
    if (size == 0) return static_cast<Memory>(sign);
    return static_cast<Memory>(sign | (size - ((127u - bias) << 23)) >> (23 - mantissaBits));
  }
};
using PatternFloat8e4m3 = PatternFloat8<3, 7, 6>;
using PatternFloat8e5m2 = PatternFloat8<2, 15, 13>;
template <class Unsigned, bool isSigned>
struct IntegerPattern {
  using Exact = std::uint64_t;
  using Memory = Unsigned;
  static constexpr bool kFloat = false;
  static constexpr bool kSigned = isSigned;
  static constexpr unsigned kUnusedBits = 64 - 8 * sizeof(Memory);
  static constexpr std::uint64_t kLimit =
      (std::uint64_t{1} << (8 * sizeof(Memory) - (isSigned ? 1 : 0) - 1)) - 1;
  static constexpr std::uint64_t kFactors = 1;
  static GRADLINK_DEVICE Memory encode(std::uint64_t x) { return static_cast<Memory>(x); }
  /// What the type keeps of x, extended again by its sign.
  static GRADLINK_DEVICE std::uint64_t extend(std::uint64_t x) {
    if constexpr (isSigned) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(x << kUnusedBits) >> kUnusedBits);
    } else {
      return static_cast<Memory>(x);
    }
  }
};

template <class P>
class Pattern {
 public:
  using Exact = typename P::Exact;

  GRADLINK_DEVICE explicit Pattern(const PatternCall& call)
      : op_(call.op), size_(call.size), seed_(mix(call.seed + 1)) {
    if (op_ == ReduceOp::prod) {
      active_ = size_ < P::kFactors ? size_ : P::kFactors;
      return;
    }
    const bool adds = op_ == ReduceOp::sum || op_ == ReduceOp::avg;
    if (op_ == ReduceOp::avg && P::kFloat) unit_ = size_;
    active_ = size_;
    if (adds && P::kLimit / unit_ < size_) active_ = P::kLimit / unit_;
    amplitude_ = active_ == 0 ? 0 : P::kLimit / unit_ / (adds ? active_ : 1);
  }

  GRADLINK_DEVICE Exact input(std::uint64_t index, std::uint64_t rank) const {
    const std::uint64_t h = mix(index * 0x9e3779b97f4a7c15u + seed_ + rank * 0xd1342543de82ef95u);
    if constexpr (P::kFloat) {
      if (op_ == ReduceOp::prod) return factor(h, index, rank);
      if (!isActive(index, rank)) return 0;
      return static_cast<double>(static_cast<std::int64_t>(spread(h))) * static_cast<double>(unit_);
    } else {
      if (op_ == ReduceOp::prod) return h | 1;
      if (op_ == ReduceOp::avg) return isActive(index, rank) ? spread(h) : 0;
      return P::extend(h);
    }
  }

  GRADLINK_DEVICE Exact reduction(std::uint64_t index) const {
    Exact result = input(index, 0);
    GRADLINK_KEEP_ROLLED
    for (std::uint64_t rank = 1; rank < size_; ++rank) result = fold(result, input(index, rank));
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
  GRADLINK_DEVICE bool isActive(std::uint64_t index, std::uint64_t rank) const {
    return active_ == size_ || (index + rank) % size_ < active_;
  }
  /// From -amplitude to amplitude, or from 0 for unsigned types; two's complement.
  GRADLINK_DEVICE std::uint64_t spread(std::uint64_t h) const {
    if constexpr (P::kSigned) {
      return multiplyHigh(h, 2 * amplitude_ + 1) - amplitude_;
    } else {
      return multiplyHigh(h, amplitude_ + 1);
    }
  }
  GRADLINK_DEVICE double factor(std::uint64_t h, std::uint64_t index, std::uint64_t rank) const {
    double value = (h & 1) != 0 ? -1 : 1;
    if (isActive(index, rank)) value *= (h & 2) != 0 ? 2 : 0.5;
    if ((index + rank) % size_ == 0) value *= 1 + 0.25 * static_cast<double>(multiplyHigh(h, 4));
    return value;
  }
  GRADLINK_DEVICE Exact fold(Exact a, Exact b) const {
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
  static GRADLINK_DEVICE bool less(Exact a, Exact b) {
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

template <class P>
GRADLINK_DEVICE typename P::Memory valueAt(const Pattern<P>& pattern, const PatternCall& call,
                                           std::uint64_t i) {
  const std::uint64_t index = call.first + i;
  return P::encode(call.rank < 0 ? pattern.reduction(index)
                                 : pattern.input(index, static_cast<std::uint64_t>(call.rank)));
}

template <class P>
GRADLINK_DEVICE void fillTile(void* to, const PatternCall& call) {
  const Pattern<P> pattern(call);
  const std::uint64_t begin = blockIdx.x * kPatternTile;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < begin + kPatternTile && i < call.count;
       i += kThreads) {
    static_cast<typename P::Memory*>(to)[i] = valueAt(pattern, call, i);
  }
}

template <class P>
GRADLINK_DEVICE void checkTile(const void* got, const PatternCall& call, std::uint64_t* wrong) {
  const Pattern<P> pattern(call);
  const std::uint64_t begin = blockIdx.x * kPatternTile;
  std::uint64_t mine = 0;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < begin + kPatternTile && i < call.count;
       i += kThreads) {
    if (static_cast<const typename P::Memory*>(got)[i] != valueAt(pattern, call, i)) ++mine;
  }
  if (mine != 0) addTo(wrong, mine);
}

/// Calls `call` with the pattern of the element type, as a value that carries nothing but its type.
template <class Call>
GRADLINK_DEVICE void withPattern(DType dtype, Call call) {
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
    case DType::float64:
      return call(PatternFloat64{});
    case DType::float8e4m3:
      return call(PatternFloat8e4m3{});
    case DType::float8e5m2:
      return call(PatternFloat8e5m2{});
    case DType::int16:  // of the host alone
      return;
  }
}

struct Fill {
  void* to;
  const PatternCall& call;
  template <class P>
  GRADLINK_DEVICE void operator()(P) const {
    fillTile<P>(to, call);
  }
};
struct Check {
  const void* got;
  const PatternCall& call;
  std::uint64_t* wrong;
  template <class P>
  GRADLINK_DEVICE void operator()(P) const {
    checkTile<P>(got, call, wrong);
  }
};

GRADLINK_KERNEL gradlinkFillPattern(void* to, PatternCall call) {
  withPattern(call.dtype, Fill{to, call});
}
GRADLINK_KERNEL gradlinkCountWrong(const void* got, PatternCall call, std::uint64_t* wrong) {
  withPattern(call.dtype, Check{got, call, wrong});
}

}  // namespace gradlink::kernels
