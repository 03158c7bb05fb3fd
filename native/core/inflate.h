// Decompression of raw deflate data (RFC 1951), for the little that this package has compressed
// beside it: small code, no library.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace gradlink {

/// Empty for data that is none, ends too early, or gives more than `most` bytes.
std::optional<std::vector<char>> inflate(std::span<const char> data, std::size_t most);

}  // namespace gradlink
