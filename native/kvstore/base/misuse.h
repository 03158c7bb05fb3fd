// Errors of wrong calls of a store. Their messages name a key, a file or an option instead of an
// operation, so misuse(op, text) of core/error.h does not fit.
#pragma once

#include <string>

#include "core/error.h"

namespace gradlink {

/// The caller's mistake; the store stays usable.
inline Error storeMisuse(const std::string& message) {
  return Error(ErrorCode::invalidArgument, message).stillUsable();
}

/// This store or machine cannot do it; the store stays usable.
inline Error storeUnsupported(const std::string& message) {
  return Error(ErrorCode::unsupported, message).stillUsable();
}

}  // namespace gradlink
