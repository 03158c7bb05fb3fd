// Translates the ranks in errors of a part to the ranks of the whole communicator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace gradlink {

/// Replaces each number of "rank 1" and "ranks 0, 1" in a text.
std::string renameRanks(const std::string& text, const std::function<int(int)>& nameOf);

/// Replaces each such mention, its word included, by `written` of its numbers.
std::string rewriteRanks(const std::string& text,
                         const std::function<std::string(const std::vector<int>&)>& written);

/// A part's error as the whole's, for `op`. Reverses fromWhole().
Error toWhole(const Error& error, const std::string& op, int partSize,
              const std::function<int(int)>& nameOf);

/// The whole's error for a part's fail(). Its rank exceeds the part's, so toWhole() knows it.
Error fromWhole(const Error& error, int partSize);

}  // namespace gradlink
