// Environment variables that name code to load.
#pragma once

#include <cstdlib>

namespace gradlink {

/// Null if unset, or if the process has more rights than its user (set-user-ID, file capabilities):
/// the system's loader ignores such variables then, too.
inline const char* codeFromEnvironment(const char* name) {
#ifdef __linux__
  return secure_getenv(name);
#else
  return std::getenv(name);
#endif
}

}  // namespace gradlink
