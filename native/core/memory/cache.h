// The processor's caches, as far as choices depend on them.
#pragma once

#include <cstddef>
#include <string>

namespace gradlink {

/// Bytes of one last-level cache: what a core has before it, not what all of them hold together.
std::size_t lastLevelCacheBytes();

/// Bytes of a core's own cache of the second level.
std::size_t secondLevelCacheBytes();

/// The same by what others say. `folder`: the kernel's of a core's caches. `library`: what the C
/// library says, 0 or less where it knows nothing.
std::size_t lastLevelCacheBytes(const std::string& folder, long library);
std::size_t secondLevelCacheBytes(const std::string& folder, long library);

}  // namespace gradlink
