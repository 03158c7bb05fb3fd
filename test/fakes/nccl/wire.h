// Between a rank and the hub of another process: a stream socket (address.h). A rank
// sends what it would have called, with its input; the answer brings its output.
#pragma once

#include <memory>
#include <string>

#include "nccl/port.h"

namespace gradlink::fake {

/// Serves ranks of other processes until the process ends; the name that they find the hub by.
std::string serve(const std::string& token, std::shared_ptr<Hub> hub);
std::unique_ptr<Port> connectPort(const std::string& name);

}  // namespace gradlink::fake
