// A job for many hosts that runs on one.
#pragma once

#include <memory>

#include "core/communicator.h"

namespace gradlink {

/// Every call goes to the host's engine; `world` provides the backend's name and is closed with it.
/// Both have the same ranks.
std::unique_ptr<Communicator> makeOneHost(std::unique_ptr<Communicator> engine,
                                          std::unique_ptr<Communicator> world);

}  // namespace gradlink
