// Variables of the environment that name code to load.
#pragma once

#include <cstdlib>

namespace gradlink {

/// Null where it is not set, and in a process that has more rights than who started it
/// (set-user-ID, file capabilities): there the system's loader takes no path from the environment
/// either.
inline const char* codeFromEnvironment(const char* name) {
#ifdef __linux__
  return secure_getenv(name);
#else
  return std::getenv(name);
#endif
}

}  // namespace gradlink
