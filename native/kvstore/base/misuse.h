// How a store says that a call is wrong. Its messages name a key, a file or an option and no
// operation, so misuse(op, text) of core/error.h does not fit.
#pragma once

#include <string>

#include "core/error.h"

namespace gradlink {

/// What the caller got wrong; the store stays usable.
inline Error storeMisuse(const std::string& message) {
  return Error(ErrorCode::invalidArgument, message).stillUsable();
}

/// What a store of this type or on this machine cannot do; it stays usable.
inline Error storeUnsupported(const std::string& message) {
  return Error(ErrorCode::unsupported, message).stillUsable();
}

}  // namespace gradlink
