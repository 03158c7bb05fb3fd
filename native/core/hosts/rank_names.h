// Errors of a communicator that is part of another speak of its own ranks: this turns them into
// the whole's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"

namespace gradlink {

/// "rank 1" and "ranks 0, 1" in a text, each number replaced.
std::string renameRanks(const std::string& text, const std::function<int(int)>& nameOf);

/// The same with each such mention, its word included, replaced by what `written` makes of its
/// numbers.
std::string rewriteRanks(const std::string& text,
                         const std::function<std::string(const std::vector<int>&)>& written);

/// A part's error as the whole's, for `op`. What fromWhole() made comes back as it was.
Error toWhole(const Error& error, const std::string& op, int partSize,
              const std::function<int(int)>& nameOf);

/// The whole's error for a part's fail(): its rank lies past the part's own, so that toWhole()
/// tells it from the part's errors.
Error fromWhole(const Error& error, int partSize);

}  // namespace gradlink
