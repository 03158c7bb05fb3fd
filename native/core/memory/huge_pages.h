// Huge pages, where the system permits: fewer first touches (1 for 2 MiB, not 512) and TLB misses.
#pragma once

#include <cstddef>

namespace gradlink {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Advice only, best before the first touch.
void adviseHugePages(void* data, std::size_t bytes);

/// Touches writable pages with all threads and keeps their contents. Returns 0 or errno, with some
/// pages untouched; EINVAL on kernels before Linux 5.14.
int touchPages(void* data, std::size_t bytes);

}  // namespace gradlink
