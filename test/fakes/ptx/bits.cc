// Logic, shifts, fields, bytes, and the choice of one of two values.
#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

template <class T, class Of>
void combine(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], Of()(get<T>(thread, i.from[0]), get<T>(thread, i.from[1])));
}

template <class T>
void invert(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], static_cast<T>(~get<T>(thread, i.from[0])));
}
template <>
void invert<bool>(Thread& thread, const Instruction& i) {
  thread.registers[i.to[0]] = thread.registers[i.from[0]] ^ 1;
}

Operation onBits(std::string_view type, auto with) {
  return type.starts_with('b') ? byInteger(type, with) : nullptr;
}

template <class Of>
Operation combineOf(std::string_view type) {
  if (type == "pred") return &combine<std::uint64_t, Of>;
  return onBits(type, [](auto of) -> Operation { return &combine<decltype(of), Of>; });
}

/// Amounts beyond the width shift all out.
template <class T>
void left(Thread& thread, const Instruction& i) {
  const auto by = get<std::uint32_t>(thread, i.from[1]);
  const T a = get<T>(thread, i.from[0]);
  put<T>(thread, i.to[0], by < 8 * sizeof(T) ? static_cast<T>(std::uint64_t{a} << by) : T{0});
}
template <class T>
void right(Thread& thread, const Instruction& i) {
  const auto by = get<std::uint32_t>(thread, i.from[1]);
  const T a = get<T>(thread, i.from[0]);
  const T all = a < 0 ? static_cast<T>(-1) : T{0};
  put<T>(thread, i.to[0], by < 8 * sizeof(T) ? static_cast<T>(a >> by) : all);
}

template <class T>
void choose(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], get<T>(thread, i.from[thread.registers[i.from[2]] != 0 ? 0 : 1]));
}

template <class T>
T fieldMask(std::uint32_t length) {
  return length >= 8 * sizeof(T) ? static_cast<T>(-1) : static_cast<T>((T{1} << length) - 1);
}
template <class T>
void insertField(Thread& thread, const Instruction& i) {
  const std::uint32_t at = thread.registers[i.from[2]] & 0xff;
  const std::uint32_t length = thread.registers[i.from[3]] & 0xff;
  const T base = get<T>(thread, i.from[1]);
  if (at >= 8 * sizeof(T)) return put<T>(thread, i.to[0], base);
  const T mask = static_cast<T>(fieldMask<T>(length) << at);
  const T value = static_cast<T>(get<T>(thread, i.from[0]) << at);
  put<T>(thread, i.to[0], (value & mask) | (base & ~mask));
}
template <class T>
void extractField(Thread& thread, const Instruction& i) {
  const std::uint32_t at = thread.registers[i.from[1]] & 0xff;
  const std::uint32_t length = thread.registers[i.from[2]] & 0xff;
  const T a = get<T>(thread, i.from[0]);
  put<T>(thread, i.to[0], at < 8 * sizeof(T) ? (a >> at) & fieldMask<T>(length) : T{0});
}

void permute(Thread& thread, const Instruction& i) {
  const std::uint64_t bytes = std::uint64_t{get<std::uint32_t>(thread, i.from[0])} |
                              std::uint64_t{get<std::uint32_t>(thread, i.from[1])} << 32;
  const auto selectors = get<std::uint32_t>(thread, i.from[2]);
  std::uint32_t result = 0;
  for (unsigned each = 0; each < 4; ++each) {
    const unsigned selector = selectors >> (4 * each) & 0xf;
    std::uint32_t byte = bytes >> (8 * (selector & 7)) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * each);
  }
  put(thread, i.to[0], result);
}

template <class T>
void count(Thread& thread, const Instruction& i) {
  put<std::uint32_t>(thread, i.to[0],
                     static_cast<std::uint32_t>(std::popcount(get<T>(thread, i.from[0]))));
}

}  // namespace

Operation bitsOf(const Parts& parts) {
  if (parts.size() != 2) return nullptr;
  const auto [name, type] = std::pair(parts[0], parts[1]);
  const bool wide = type == "b32" || type == "u32";
  const bool wider = type == "b64" || type == "u64";
  if (name == "and") return combineOf<std::bit_and<>>(type);
  if (name == "or") return combineOf<std::bit_or<>>(type);
  if (name == "xor") return combineOf<std::bit_xor<>>(type);
  if (name == "not" && type == "pred") return &invert<bool>;
  if (name == "not") {
    return onBits(type, [](auto of) -> Operation { return &invert<decltype(of)>; });
  }
  if (name == "shl" && type == "b16") return &left<std::uint16_t>;
  if (name == "shl" && wide) return &left<std::uint32_t>;
  if (name == "shl" && wider) return &left<std::uint64_t>;
  if (name == "shr") {
    return byInteger(type, [](auto of) -> Operation { return &right<decltype(of)>; });
  }
  if (name == "selp") {
    return byNumber(type, [](auto of) -> Operation { return &choose<decltype(of)>; });
  }
  if (name == "bfi" && wide) return &insertField<std::uint32_t>;
  if (name == "bfi" && wider) return &insertField<std::uint64_t>;
  if (name == "bfe" && wide) return &extractField<std::uint32_t>;
  if (name == "bfe" && wider) return &extractField<std::uint64_t>;
  if (name == "prmt" && wide) return &permute;
  if (name == "popc" && wide) return &count<std::uint32_t>;
  if (name == "popc" && wider) return &count<std::uint64_t>;
  return nullptr;
}

}  // namespace gradlink::fake::ptx
