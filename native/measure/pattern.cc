#include "measure/pattern.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/kernels/identity.h"
#include "core/thread_pool.h"

namespace gradlink::measure {
namespace {

// Elements of one part handed to a thread: enough work to be worth waking it.
constexpr std::size_t kPartElements = 1 << 16;

/// A finaliser of the splitmix family: every output bit depends on every input bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash(std::uint64_t seed, std::uint64_t index, std::uint64_t rank) {
  return mix(index * 0x9e3779b97f4a7c15u + mix(seed + 1) + rank * 0xd1342543de82ef95u);
}

/// A whole number from 0 to range - 1, from the high bits of `h`.
std::uint64_t scale(std::uint64_t h, std::uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(h) * range) >> 64);
}

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Float8E4M3 {
  static constexpr int kMantissaBits = 3;
  static constexpr std::uint32_t kBias = 7;
  std::uint8_t bits;
};
struct Float8E5M2 {
  static constexpr int kMantissaBits = 2;
  static constexpr std::uint32_t kBias = 15;
  std::uint8_t bits;
};

template <class T>
constexpr bool kIsFloat8 = std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;
template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Float16> ||
                          std::is_same_v<T, BFloat16> || kIsFloat8<T>;

/// Values are handled exactly: in double for floats, modulo 2^64 for integers (sign-extended).
template <class T>
using Exact = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;

/// Whole numbers up to this are exact; for integers, about half of what the type holds.
template <class T>
constexpr std::uint64_t limitOf() {
  if constexpr (std::is_same_v<T, Float16>) {
    return 1u << 11;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return 1u << 8;
  } else if constexpr (kIsFloat8<T>) {
    return 2u << T::kMantissaBits;
  } else if constexpr (std::is_same_v<T, float>) {
    return 1u << 24;
  } else if constexpr (std::is_same_v<T, double>) {
    return std::uint64_t{1} << 53;
  } else {
    return (std::uint64_t{1} << (8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0) - 1)) - 1;
  }
}

/// Factors of 2 or 1/2 that a product can hold and stay a normal number.
template <class T>
constexpr std::uint64_t kFactors = std::is_same_v<T, Float16>      ? 11
                                   : std::is_same_v<T, Float8E4M3> ? 6
                                   : std::is_same_v<T, Float8E5M2> ? 13
                                   : std::is_same_v<T, double>     ? 1000
                                                                   : 120;

/// The value is exactly representable: nothing is rounded here.
template <class T>
T encode(Exact<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
  } else if constexpr (std::is_same_v<T, Float16>) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    if ((bits & 0x7fffffffu) == 0) return {static_cast<std::uint16_t>(sign)};
    // float32 to float16: the exponent's bias from 127 to 15, the fraction from 23 bits to 10.
    return {static_cast<std::uint16_t>(sign | (((bits & 0x7fffffffu) - 0x38000000u) >> 13))};
  } else if constexpr (kIsFloat8<T>) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t sign = (bits >> 24) & 0x80u;
    if ((bits & 0x7fffffffu) == 0) return {static_cast<std::uint8_t>(sign)};
    const std::uint32_t rebiased = (bits & 0x7fffffffu) - ((127u - T::kBias) << 23);
    return {static_cast<std::uint8_t>(sign | (rebiased >> (23 - T::kMantissaBits)))};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
class Generator {
 public:
  explicit Generator(const Pattern& pattern)
      : op_(pattern.op),
        size_(static_cast<std::uint64_t>(std::max(1, pattern.size))),
        seed_(pattern.seed) {
    if (op_ == ReduceOp::prod) {
      active_ = std::min(size_, kFactors<T>);
      return;
    }
    const bool adds = op_ == ReduceOp::sum || op_ == ReduceOp::avg;
    // Averages of floats are whole where every summand is a multiple of the number of ranks.
    if (op_ == ReduceOp::avg && kIsFloat<T>) unit_ = size_;
    active_ = adds ? std::min(size_, limitOf<T>() / unit_) : size_;
    amplitude_ = active_ == 0 ? 0 : limitOf<T>() / unit_ / (adds ? active_ : 1);
  }

  Exact<T> input(std::uint64_t index, std::uint64_t rank) const {
    const std::uint64_t h = hash(seed_, index, rank);
    if constexpr (!kIsFloat<T>) {
      // Wrapping makes every value good, except for avg, where a wrapped sum would have no meaning.
      if (op_ == ReduceOp::prod) return h | 1;
      if (op_ == ReduceOp::avg) return isActive(index, rank) ? spread(h) : 0;
      return extend(h);
    } else {
      if (op_ == ReduceOp::prod) return factor(h, index, rank);
      if (!isActive(index, rank)) return 0;
      return static_cast<double>(static_cast<std::int64_t>(spread(h))) * static_cast<double>(unit_);
    }
  }

  Exact<T> reduction(std::uint64_t index, std::uint64_t ranks) const {
    Exact<T> result = input(index, 0);
    for (std::uint64_t rank = 1; rank < ranks; ++rank) result = fold(result, input(index, rank));
    if (op_ != ReduceOp::avg) return result;
    if constexpr (kIsFloat<T>) {
      return result / static_cast<double>(size_);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(result) /
                                        static_cast<std::int64_t>(size_));
    } else {
      return result / size_;
    }
  }

 private:
  bool isActive(std::uint64_t index, std::uint64_t rank) const {
    return active_ == size_ || (index + rank) % size_ < active_;
  }

  /// From -amplitude to amplitude, or from 0 for unsigned types; two's complement.
  std::uint64_t spread(std::uint64_t h) const {
    if constexpr (kIsFloat<T> || std::is_signed_v<T>) {
      return scale(h, 2 * amplitude_ + 1) - amplitude_;
    } else {
      return scale(h, amplitude_ + 1);
    }
  }

  /// What T keeps of h, extended again by T's sign.
  static std::uint64_t extend(std::uint64_t h) {
    return static_cast<std::uint64_t>(static_cast<T>(h));
  }

  double factor(std::uint64_t h, std::uint64_t index, std::uint64_t rank) const {
    double value = (h & 1) != 0 ? -1 : 1;
    if (isActive(index, rank)) value *= (h & 2) != 0 ? 2 : 0.5;
    // One rank brings digits: 1.25, 1.5 or 1.75.
    if ((index + rank) % size_ == 0) value *= 1 + 0.25 * static_cast<double>(scale(h, 4));
    return value;
  }

  Exact<T> fold(Exact<T> a, Exact<T> b) const {
    switch (op_) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        return a + b;
      case ReduceOp::prod:
        return a * b;
      case ReduceOp::min:
        return less(b, a) ? b : a;
      case ReduceOp::max:
        return less(a, b) ? b : a;
    }
    return a;
  }

  static bool less(Exact<T> a, Exact<T> b) {
    if constexpr (!kIsFloat<T> && std::is_signed_v<T>) {
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

template <class Call>
auto withType(DType dtype, Call call) {
  switch (dtype) {
    case DType::int8:
      return call(std::int8_t{});
    case DType::uint8:
      return call(std::uint8_t{});
    case DType::int16:
      return call(std::int16_t{});
    case DType::int32:
      return call(std::int32_t{});
    case DType::uint32:
      return call(std::uint32_t{});
    case DType::int64:
      return call(std::int64_t{});
    case DType::uint64:
      return call(std::uint64_t{});
    case DType::float16:
      return call(Float16{});
    case DType::bfloat16:
      return call(BFloat16{});
    case DType::float32:
      return call(float{});
    case DType::float8e4m3:
      return call(Float8E4M3{});
    case DType::float8e5m2:
      return call(Float8E5M2{});
    default:  // float64
      break;
  }
  return call(double{});
}

template <class Body>
void inParts(std::size_t count, Body body) {
  const std::size_t parts = (count + kPartElements - 1) / kPartElements;
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const std::size_t begin = part * kPartElements;
    body(begin, std::min(count, begin + kPartElements));
  });
}

/// Elements of `got` whose bits differ from expected(i)'s.
template <class T, class Expected>
std::size_t countWrong(const void* got, std::size_t count, Expected expected) {
  std::atomic<std::size_t> wrong{0};
  inParts(count, [&](std::size_t begin, std::size_t end) {
    std::size_t mine = 0;
    const auto* bytes = static_cast<const std::uint8_t*>(got);
    for (std::size_t i = begin; i < end; ++i) {
      const T value = encode<T>(expected(i));
      if (std::memcmp(&value, bytes + i * sizeof(T), sizeof(T)) != 0) ++mine;
    }
    wrong += mine;
  });
  return wrong;
}

/// Elements of `got` that have not these bits.
template <class T>
std::size_t countOthers(const void* got, std::size_t count, std::uint64_t bits) {
  const auto* bytes = static_cast<const std::uint8_t*>(got);
  std::size_t others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&bits, bytes + i * sizeof(T), sizeof(T)) != 0) ++others;
  }
  return others;
}

}  // namespace

void fillPattern(void* to, std::size_t first, std::size_t count, const Pattern& pattern, int rank) {
  withType(pattern.dtype, [&](auto type) {
    using T = decltype(type);
    const Generator<T> generator(pattern);
    inParts(count, [&](std::size_t begin, std::size_t end) {
      auto* bytes = static_cast<std::uint8_t*>(to);
      for (std::size_t i = begin; i < end; ++i) {
        const T value = encode<T>(generator.input(first + i, static_cast<std::uint64_t>(rank)));
        std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
      }
    });
  });
}

std::size_t countWrongInput(const void* got, std::size_t first, std::size_t count,
                            const Pattern& pattern, int rank) {
  return withType(pattern.dtype, [&](auto type) {
    using T = decltype(type);
    const Generator<T> generator(pattern);
    return countWrong<T>(got, count, [&](std::size_t i) {
      return generator.input(first + i, static_cast<std::uint64_t>(rank));
    });
  });
}

std::size_t countWrongReduction(const void* got, std::size_t first, std::size_t count,
                                const Pattern& pattern, int ranks) {
  return withType(pattern.dtype, [&](auto type) {
    using T = decltype(type);
    if (ranks == 0) return countOthers<T>(got, count, identityBits(pattern.dtype, pattern.op));
    const Generator<T> generator(pattern);
    return countWrong<T>(got, count, [&](std::size_t i) {
      return generator.reduction(first + i, static_cast<std::uint64_t>(ranks));
    });
  });
}

}  // namespace gradlink::measure
