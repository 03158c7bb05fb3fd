// Files read and replaced as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradlink {

/// Replaces `file` in one step: a crash or a full disk leaves the old one. Throws Error(system).
void writeFileAtomically(const std::string& file, std::span<const std::uint8_t> bytes);

/// Throws Error(system).
std::vector<std::uint8_t> readWholeFile(const std::string& file);

}  // namespace gradlink
