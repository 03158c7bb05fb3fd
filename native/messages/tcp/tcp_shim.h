// The shim over TCP, for jobs without MPI: torchrun, Kubernetes.
#pragma once

#include "messages/shim.h"

namespace gradlink::messages::tcp {

inline constexpr const char* kFlavour = "tcp";

const Shim& shim();

}  // namespace gradlink::messages::tcp
