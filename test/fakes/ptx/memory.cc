// Loads, stores, atomic sums. Every access is checked: inside one allocation, and aligned.
#include <atomic>
#include <cstdio>

#include "ptx/run.h"

namespace gradlink::fake::ptx {
namespace {

std::string described(std::uint64_t address, std::size_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%zu bytes at 0x%llx", bytes,
                static_cast<unsigned long long>(address));
  return text;
}

template <std::size_t bytes>
std::byte* checked(Thread& thread, const Instruction& i) {
  const std::uint64_t address = thread.registers[i.from[0]] + static_cast<std::uint64_t>(i.offset);
  if (address % bytes != 0) {
    throw Trap{Outcome::misaligned, described(address, bytes) + " are not aligned"};
  }
  Range& range = thread.met[thread.next - 1];
  if (address - range.begin >= range.bytes || range.bytes - (address - range.begin) < bytes) {
    range = (*thread.findRange)(address);
    if (address - range.begin >= range.bytes || range.bytes - (address - range.begin) < bytes) {
      throw Trap{Outcome::illegalAddress, described(address, bytes) + " are in no allocation"};
    }
  }
  return reinterpret_cast<std::byte*>(address);
}

template <class T, std::size_t count>
void read(const Thread& thread, const Instruction& i, const std::byte* from) {
  for (std::size_t each = 0; each < count; ++each) {
    T value;
    std::memcpy(&value, from + each * sizeof(T), sizeof(T));
    put<T>(thread, i.to[each], value);
  }
}
template <class T, std::size_t count>
void load(Thread& thread, const Instruction& i) {
  read<T, count>(thread, i, checked<count * sizeof(T)>(thread, i));
}
template <class T, std::size_t count>
void loadParameter(Thread& thread, const Instruction& i) {
  read<T, count>(thread, i, thread.parameters + i.offset);
}
template <class T, std::size_t count>
void loadVolatile(Thread& thread, const Instruction& i) {
  static_assert(count == 1);
  auto* const from = reinterpret_cast<T*>(checked<sizeof(T)>(thread, i));
  put<T>(thread, i.to[0], std::atomic_ref<T>(*from).load());
}
template <class T, std::size_t count>
void store(Thread& thread, const Instruction& i) {
  std::byte* const to = checked<count * sizeof(T)>(thread, i);
  for (std::size_t each = 0; each < count; ++each) {
    const T value = get<T>(thread, i.to[each]);
    std::memcpy(to + each * sizeof(T), &value, sizeof(T));
  }
}
template <class T>
void atomicAdd(Thread& thread, const Instruction& i) {
  auto* const to = reinterpret_cast<T*>(checked<sizeof(T)>(thread, i));
  put<T>(thread, i.to[0], std::atomic_ref<T>(*to).fetch_add(get<T>(thread, i.from[1])));
}

enum class Access { loads, loadsParameter, stores };
template <Access access, std::size_t count>
Operation accessOf(std::string_view type) {
  return byNumber(type, [](auto of) -> Operation {
    using T = decltype(of);
    if constexpr (access == Access::loads) return &load<T, count>;
    if constexpr (access == Access::loadsParameter) return &loadParameter<T, count>;
    return &store<T, count>;
  });
}
template <Access access>
Operation accessOf(std::string_view vector, std::string_view type) {
  if (vector == "v2") return accessOf<access, 2>(type);
  if (vector == "v4") return accessOf<access, 4>(type);
  return accessOf<access, 1>(type);
}

}  // namespace

Operation memoryOf(const Parts& parts) {
  std::size_t at = 1;
  const auto take = [&](std::string_view part) {
    if (at < parts.size() && parts[at] == part) return ++at, true;
    return false;
  };
  const bool isVolatile = take("volatile");
  const bool parameter = take("param");
  if (!parameter) take("global");
  if (parts[0] == "atom") {
    if (!take("add")) return nullptr;
    if (at + 1 != parts.size()) return nullptr;
    if (parts[at] == "u64") return &atomicAdd<std::uint64_t>;
    return parts[at] == "u32" ? &atomicAdd<std::uint32_t> : nullptr;
  }
  take("nc");
  const std::string_view vector = take("v2") ? "v2" : take("v4") ? "v4" : "";
  if (at + 1 != parts.size()) return nullptr;
  const std::string_view type = parts[at];
  if (parts[0] == "st") {
    return parameter ? nullptr : accessOf<Access::stores>(vector, type);
  }
  if (parts[0] != "ld") return nullptr;
  if (parameter) return accessOf<Access::loadsParameter>(vector, type);
  if (!isVolatile) return accessOf<Access::loads>(vector, type);
  if (!vector.empty()) return nullptr;
  return byInteger(type, [](auto of) -> Operation { return &loadVolatile<decltype(of), 1>; });
}

}  // namespace gradlink::fake::ptx
