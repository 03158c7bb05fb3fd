// Moves, jumps and clocks.
#include <chrono>
#include <limits>

#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

template <class T>
void move(Thread& thread, const Instruction& i) {
  put<T>(thread, i.to[0], get<T>(thread, i.from[0]));
}
/// A predicate is 1 or 0; true is written as -1.
void movePredicate(Thread& thread, const Instruction& i) {
  thread.registers[i.to[0]] = get<std::uint64_t>(thread, i.from[0]) != 0 ? 1 : 0;
}
template <class Half>
void pack(Thread& thread, const Instruction& i) {
  thread.registers[i.to[0]] = std::uint64_t{get<Half>(thread, i.from[0])} |
                              std::uint64_t{get<Half>(thread, i.from[1])} << 8 * sizeof(Half);
}
template <class Half>
void unpack(Thread& thread, const Instruction& i) {
  const std::uint64_t bits = thread.registers[i.from[0]];
  put<Half>(thread, i.to[0], static_cast<Half>(bits));
  put<Half>(thread, i.to[1], static_cast<Half>(bits >> 8 * sizeof(Half)));
}
void clock(Thread& thread, const Instruction& i) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  put<std::int64_t>(thread, i.to[0], std::chrono::nanoseconds(now).count());
}
void branch(Thread& thread, const Instruction& i) { thread.next = i.target; }
void leave(Thread& thread, const Instruction&) {
  thread.next = std::numeric_limits<std::size_t>::max();
}

}  // namespace

Operation controlOf(const Parts& parts) {
  const std::string_view name = parts[0];
  if (name == "bra") return parts.size() == 1 || parts[1] == "uni" ? &branch : nullptr;
  if (name == "ret" || name == "exit") return &leave;
  if (name == "cvta" && parts.back() == "u64") return &move<std::uint64_t>;
  if (name != "mov" || parts.size() < 2) return nullptr;
  if (parts.size() == 3) {
    if (parts[2] == "clock") return parts[1].ends_with("64") ? &clock : nullptr;
    const bool packs = parts[2] == "pack";
    if (parts[1] == "b32") return packs ? &pack<std::uint16_t> : &unpack<std::uint16_t>;
    if (parts[1] == "b64") return packs ? &pack<std::uint32_t> : &unpack<std::uint32_t>;
    return nullptr;
  }
  if (parts[1] == "pred") return &movePredicate;
  return byNumber(parts[1], [](auto of) -> Operation { return &move<decltype(of)>; });
}

Operation operationOf(std::string_view opcode) {
  Parts parts;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', at), opcode.size());
    parts.push_back(opcode.substr(at, end - at));
    at = end + 1;
  }
  for (const auto of :
       {&controlOf, &memoryOf, &arithmeticOf, &bitsOf, &comparisonOf, &conversionOf}) {
    if (const Operation found = of(parts)) return found;
  }
  return nullptr;
}

}  // namespace gradlink::fake::ptx
