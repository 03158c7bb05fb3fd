// Cache sizes of the processor.
#pragma once

#include <cstddef>
#include <string>

namespace gradlink {

/// The size of one last-level cache: the part that one core uses, not the sum of all.
std::size_t lastLevelCacheBytes();

std::size_t secondLevelCacheBytes();

/// The same from given sources. `folder`: the kernel's cache folder of a core. `library`: the C
/// library's value, 0 or less if unknown.
std::size_t lastLevelCacheBytes(const std::string& folder, long library);
std::size_t secondLevelCacheBytes(const std::string& folder, long library);

}  // namespace gradlink
