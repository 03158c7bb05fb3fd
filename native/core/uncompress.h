// Decompression of zlib data.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace gradlink {

/// Empty for invalid data, beyond `most` bytes, and without zlib (Node's, else the system's).
std::optional<std::vector<char>> uncompress(std::span<const char> data, std::size_t most);

}  // namespace gradlink
