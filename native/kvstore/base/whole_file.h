// Files read and replaced as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradlink {

/// The file that a path names once its symbolic links are followed, also where that file is still
/// to be made. Throws Error(system) for links that lead in a circle.
std::string linkedFile(const std::string& file);

/// Throws Error(invalidArgument) where `file` is there and not a regular file, such as a link.
void requireReplaceable(const std::string& file);

/// Replaces `file`, or the file that it links to, in one step: a crash or a full disk leaves the
/// old one. Throws Error(system), and Error(invalidArgument) for what is there and no regular file.
void writeFileAtomically(const std::string& file, std::span<const std::uint8_t> bytes);

/// The same for a name that this library makes itself, which nobody has linked elsewhere for a good
/// reason: a link there is refused.
void writeOwnFile(const std::string& file, std::span<const std::uint8_t> bytes);

/// Throws Error(system), and Error(invalidArgument) for what is no regular file.
std::vector<std::uint8_t> readWholeFile(const std::string& file);

}  // namespace gradlink
