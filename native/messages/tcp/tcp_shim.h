// The functions that the engine asks of an MPI, over TCP: for jobs whose launcher starts no MPI
// processes, such as torchrun's and those of Kubernetes.
#pragma once

#include "messages/shim.h"

namespace gradlink::messages::tcp {

inline constexpr const char* kFlavour = "tcp";

const Shim& shim();

}  // namespace gradlink::messages::tcp
