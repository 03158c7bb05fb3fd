// Fetching memory before it is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradlink {

/// Fetches the lines so that later writes need not wait until other cores give them up.
inline void prefetchForWriting(const void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  for (std::uintptr_t line = begin / kLine * kLine; line < begin + bytes; line += kLine) {
    const auto* const at = reinterpret_cast<const char*>(line);
#if defined(__x86_64__) || defined(__i386__)
    // GCC's own is a fetch for reading unless it may use this instruction, which does nothing on
    // old processors of Intel.
    asm volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
  }
}

}  // namespace gradlink
