// Memory on huge pages, where the system leaves that to programs: fewer first touches (one of 2 MiB
// instead of 512) and fewer misses of addresses.
#pragma once

#include <cstddef>

namespace gradlink {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Advice only, best before the memory is touched: a refusal changes nothing but speed.
void adviseHugePages(void* data, std::size_t bytes);

/// Takes the first touch of writable pages by all threads; what they hold stays. 0, or errno: then
/// some of them are not there. EINVAL where the kernel is older than Linux 5.14.
int touchPages(void* data, std::size_t bytes);

}  // namespace gradlink
