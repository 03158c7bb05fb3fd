// The processor's caches, as far as choices depend on them.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace gradlink {

/// Bytes of one last-level cache; a usual size where the system does not say.
inline std::size_t lastLevelCacheBytes() {
  constexpr std::size_t kUsual = 32 << 20;
  static const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : kUsual;
}

}  // namespace gradlink
