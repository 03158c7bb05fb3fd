// Decompression of what zlib compressed.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace gradlink {

/// Empty for data that is not compressed or is damaged, for more than `most` bytes, and where there
/// is no zlib: it is Node's own, or else the system's.
std::optional<std::vector<char>> uncompress(std::span<const char> data, std::size_t most);

}  // namespace gradlink
