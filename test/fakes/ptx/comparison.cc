// setp: a float's comparison is false where a side is no number, true in its form with a u.
#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

struct Equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Unequal {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Always {
  template <class T>
  bool operator()(T, T) const {
    return true;
  }
};
struct Never {
  template <class T>
  bool operator()(T, T) const {
    return false;
  }
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
  if (how == "eq") return ordered<Equal>(type);
  if (how == "ne") return ordered<Unequal>(type);
  if (how == "lt" || how == "lo") return ordered<Less>(type);
  if (how == "le" || how == "ls") return ordered<LessEqual>(type);
  if (how == "gt" || how == "hi") return ordered<Greater>(type);
  if (how == "ge" || how == "hs") return ordered<GreaterEqual>(type);
  if (how == "equ") return unordered<Equal>(type);
  if (how == "neu") return unordered<Unequal>(type);
  if (how == "ltu") return unordered<Less>(type);
  if (how == "leu") return unordered<LessEqual>(type);
  if (how == "gtu") return unordered<Greater>(type);
  if (how == "geu") return unordered<GreaterEqual>(type);
  if (how == "num" && type.starts_with('f')) return ordered<Always>(type);
  if (how == "nan") return unordered<Never>(type);
  return nullptr;
}

}  // namespace gradlink::fake::ptx
