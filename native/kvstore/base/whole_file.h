// Reading and replacing whole files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradlink {

/// Follows a path's symbolic links, even to a missing file. Throws Error(system) for circular ones.
std::string linkedFile(const std::string& file);

/// Throws Error(invalidArgument) if `file` exists and is not a regular file.
void requireReplaceable(const std::string& file);

/// Replaces `file`, or its link's target, atomically: after a crash or on a full disk the old one
/// stays. Throws Error(system), and Error(invalidArgument) if it is not a regular file.
void writeFileAtomically(const std::string& file, std::span<const std::uint8_t> bytes);

/// The same for a name that this library chooses: a link there is refused.
void writeOwnFile(const std::string& file, std::span<const std::uint8_t> bytes);

/// Throws Error(system), and Error(invalidArgument) if it is not a regular file.
std::vector<std::uint8_t> readWholeFile(const std::string& file);

}  // namespace gradlink
