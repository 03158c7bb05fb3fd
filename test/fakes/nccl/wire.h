// Between a rank and the hub of another process: a stream socket in the abstract namespace. A rank
// sends what it would have called, with its input; the answer brings its output.
#pragma once

#include <memory>
#include <string>

#include "nccl/port.h"

namespace gradlink::fake {

/// Serves ranks of other processes until the process ends.
void serve(const std::string& name, std::shared_ptr<Hub> hub);
std::unique_ptr<Port> connectPort(const std::string& name);

}  // namespace gradlink::fake
