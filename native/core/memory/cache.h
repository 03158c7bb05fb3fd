// Cache sizes of the processor.
#pragma once

#include <cstddef>
#include <string>

namespace gradlink {

/// The size of one last-level cache: the part that one core uses, not the sum of all.
std::size_t lastLevelCacheBytes();

std::size_t secondLevelCacheBytes();

/// The same from a cache folder of the kernel and the C library's value (0 or less: unknown).
std::size_t lastLevelCacheBytes(const std::string& folder, long library);
std::size_t secondLevelCacheBytes(const std::string& folder, long library);

}  // namespace gradlink
