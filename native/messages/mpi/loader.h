// Finds and loads the shim of the MPI that this process's launcher speaks for.
#pragma once

#include "messages/join.h"
#include "messages/shim.h"

namespace gradlink::messages {

struct Loaded {
  const Shim* shim = nullptr;
  LibraryInfo info;
};

/// Loads at the first call of the process; later calls give the same or throw the same
/// Error(backendUnavailable).
const Loaded& loaded();

inline const Shim& shim() { return *loaded().shim; }

/// "mpi", or "tcp" where there is none.
const char* nameOfTransport();

/// Which flavour an environment asks for. `get` gives a variable's value or null.
struct Choice {
  /// "openmpi", "mpich", "tcp", or, in a value of GRADLINK_MPI, the path of a shim. Empty: any.
  std::string what;
  /// The variable that told; empty when none did.
  std::string variable;
};
Choice chooseMpi(const char* (*get)(const char* name));

}  // namespace gradlink::messages
