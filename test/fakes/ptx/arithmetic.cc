// Sums, products, quotients, roots, least and greatest.
#include <cmath>
#include <limits>

#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

template <class T>
T canonical(T value) {
  // Results of float32 that are no number have one form on a GPU.
  if constexpr (std::is_same_v<T, float>) {
    if (value != value) return std::bit_cast<float>(0x7fffffffU);
  }
  return value;
}

template <class T>
std::make_unsigned_t<T> bare(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

/// Of integers modulo the size of their type.
template <class Of>
struct Wrapping {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return Of()(a, b);
    else
      return static_cast<T>(Of()(std::uint64_t{bare(a)}, std::uint64_t{bare(b)}));
  }
};
using Add = Wrapping<std::plus<>>;
using Sub = Wrapping<std::minus<>>;
using Mul = Wrapping<std::multiplies<>>;
template <class T>
void checkDivisor(T a, T b) {
  if (b == 0) throw Trap{Outcome::failed, "a division by zero"};
  if constexpr (std::is_signed_v<T>) {
    if (b == -1 && a == std::numeric_limits<T>::min()) {
      throw Trap{Outcome::failed, "a quotient that overflows"};
    }
  }
}
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) checkDivisor(a, b);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    checkDivisor(a, b);
    return static_cast<T>(a % b);
  }
};
template <bool least>
struct Extreme {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      // A number is preferred, and -0 is less than +0.
      if (a != a) return b;
      if (b != b) return a;
      if (a == b) return std::signbit(a) == least ? a : b;
    }
    return (a < b) == least ? a : b;
  }
};
using Min = Extreme<true>;
using Max = Extreme<false>;

template <class T, class Of>
void binary(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], canonical(Of()(get<T>(thread, i.from[0]), get<T>(thread, i.from[1]))));
}

struct Neg {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return static_cast<T>(0 - std::uint64_t{bare(a)});
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return a < 0 ? Neg()(a) : a;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) const {
    return canonical(std::sqrt(a));
  }
};

template <class T, class Of>
void unary(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], Of()(get<T>(thread, i.from[0])));
}

template <class T>
void fused(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0],
         canonical(std::fma(get<T>(thread, i.from[0]), get<T>(thread, i.from[1]),
                            get<T>(thread, i.from[2]))));
}

__extension__ using Signed = __int128;
__extension__ using Unsigned = unsigned __int128;

/// Of 64 bits and less, as 128 would hold it.
template <class T>
auto product(const Thread& thread, const Instruction& i) {
  using Wide = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
  return static_cast<Wide>(get<T>(thread, i.from[0])) *
         static_cast<Wide>(get<T>(thread, i.from[1]));
}
enum class Part { low, high, wide };
template <class T, Part part, bool adds>
void multiply(Thread& thread, const Instruction& i) {
  auto value = static_cast<Unsigned>(product<T>(thread, i));
  if constexpr (part == Part::high) value >>= 8 * sizeof(T);
  auto bits = static_cast<std::uint64_t>(value);
  if constexpr (adds) bits += thread.registers[i.from[2]];
  if constexpr (part != Part::wide)
    put<T>(thread, i.to[0], static_cast<T>(bits));
  else if constexpr (sizeof(T) == 2)
    thread.registers[i.to[0]] = static_cast<std::uint32_t>(bits);
  else
    thread.registers[i.to[0]] = bits;
}

template <class Of>
constexpr auto asBinary = [](auto type) -> Operation { return &binary<decltype(type), Of>; };
template <class Of>
constexpr auto asUnary = [](auto type) -> Operation { return &unary<decltype(type), Of>; };
constexpr auto asFused = [](auto type) -> Operation { return &fused<decltype(type)>; };

template <Part part, bool adds>
constexpr auto asMultiply =
    [](auto type) -> Operation { return &multiply<decltype(type), part, adds>; };

template <bool adds>
Operation multiplyOf(std::string_view part, std::string_view type) {
  if (part == "lo") return byInteger(type, asMultiply<Part::low, adds>);
  if (part == "hi") return byInteger(type, asMultiply<Part::high, adds>);
  if (part != "wide" || type.ends_with("64")) return nullptr;
  return byInteger(type, asMultiply<Part::wide, adds>);
}

}  // namespace

Operation arithmeticOf(const Parts& parts) {
  const std::string_view name = parts[0];
  const bool nearest = parts.size() == 3 && parts[1] == "rn";
  if (parts.size() == 2 || nearest) {
    const std::string_view type = parts.back();
    // Without a rounding a float's is to the nearest; with one there are no integers.
    if (nearest && !type.starts_with('f')) return nullptr;
    if (name == "add") return byNumber(type, asBinary<Add>);
    if (name == "sub") return byNumber(type, asBinary<Sub>);
    if (name == "mul") return byFloat(type, asBinary<Mul>);
    if (nearest) {
      if (name == "div") return byFloat(type, asBinary<Div>);
      if (name == "sqrt") return byFloat(type, asUnary<Sqrt>);
      return name == "fma" ? byFloat(type, asFused) : nullptr;
    }
    if (name == "div") return byInteger(type, asBinary<Div>);
    if (name == "rem") return byInteger(type, asBinary<Rem>);
    if (name == "min") return byNumber(type, asBinary<Min>);
    if (name == "max") return byNumber(type, asBinary<Max>);
    if (name == "neg") return byNumber(type, asUnary<Neg>);
    if (name == "abs") return byNumber(type, asUnary<Abs>);
    return nullptr;
  }
  if (parts.size() != 3) return nullptr;
  if (name == "mul") return multiplyOf<false>(parts[1], parts[2]);
  if (name == "mad") return multiplyOf<true>(parts[1], parts[2]);
  return nullptr;
}

}  // namespace gradlink::fake::ptx
