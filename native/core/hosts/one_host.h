// A job of many hosts that happens to be on one.
#pragma once

#include <memory>

#include "core/communicator.h"

namespace gradlink {

/// Every call goes to the host's engine; `world` lives and closes with it and names the backend.
/// Both have the same ranks.
std::unique_ptr<Communicator> makeOneHost(std::unique_ptr<Communicator> engine,
                                          std::unique_ptr<Communicator> world);

}  // namespace gradlink
