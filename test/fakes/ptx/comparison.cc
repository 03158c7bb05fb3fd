// setp: a float's comparison is false where a side is no number, true in its form with a u.
#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

template <bool is>
struct Constantly {
  bool operator()(auto, auto) const { return is; }
};

template <class T, class Of, bool unordered>
void compare(Thread& thread, const Instruction& i) {
  const T a = get<T>(thread, i.from[0]);
  const T b = get<T>(thread, i.from[1]);
  bool result = Of()(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) result = unordered;
  }
  thread.registers[i.to[0]] = static_cast<std::uint64_t>(result);
}

template <class Of>
Operation ordered(std::string_view type) {
  return byNumber(type, [](auto of) -> Operation { return &compare<decltype(of), Of, false>; });
}
template <class Of>
Operation unordered(std::string_view type) {
  return byFloat(type, [](auto of) -> Operation { return &compare<decltype(of), Of, true>; });
}

}  // namespace

Operation comparisonOf(const Parts& parts) {
  if (parts.size() != 3 || parts[0] != "setp") return nullptr;
  const auto [how, type] = std::pair(parts[1], parts[2]);
  if (how == "eq") return ordered<std::equal_to<>>(type);
  if (how == "ne") return ordered<std::not_equal_to<>>(type);
  if (how == "lt" || how == "lo") return ordered<std::less<>>(type);
  if (how == "le" || how == "ls") return ordered<std::less_equal<>>(type);
  if (how == "gt" || how == "hi") return ordered<std::greater<>>(type);
  if (how == "ge" || how == "hs") return ordered<std::greater_equal<>>(type);
  if (how == "equ") return unordered<std::equal_to<>>(type);
  if (how == "neu") return unordered<std::not_equal_to<>>(type);
  if (how == "ltu") return unordered<std::less<>>(type);
  if (how == "leu") return unordered<std::less_equal<>>(type);
  if (how == "gtu") return unordered<std::greater<>>(type);
  if (how == "geu") return unordered<std::greater_equal<>>(type);
  if (how == "num" && type.starts_with('f')) return ordered<Constantly<true>>(type);
  if (how == "nan") return unordered<Constantly<false>>(type);
  return nullptr;
}

}  // namespace gradlink::fake::ptx
