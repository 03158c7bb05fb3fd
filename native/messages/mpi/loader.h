// Finds and loads the shim for the MPI of this process's launcher.
#pragma once

#include "messages/join.h"
#include "messages/shim.h"

namespace gradlink::messages {

struct Loaded {
  const Shim* shim = nullptr;
  LibraryInfo info;
};

/// Loads once; later calls return the same or throw the same Error(backendUnavailable).
const Loaded& loaded();

inline const Shim& shim() { return *loaded().shim; }

const char* nameOfTransport();

/// The flavour that an environment asks for. `get` returns a variable's value or null.
struct Choice {
  /// "openmpi", "mpich", "tcp" or, from GRADLINK_MPI, the path of a shim. Empty: any.
  std::string what;
  /// The variable that decided; empty if none.
  std::string variable;
};
Choice chooseMpi(const char* (*get)(const char* name));

}  // namespace gradlink::messages
