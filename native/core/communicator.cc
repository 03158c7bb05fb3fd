#include "core/communicator.h"

#include "core/error.h"
#include "core/wire.h"

namespace gradlink {

std::unique_ptr<Wire> Communicator::openWire(const CallOptions& /*options*/) {
  throw Error(ErrorCode::unsupported,
              std::string("openWire: the backend ") + backend() + " has no wires; use shm or mpi")
      .stillUsable();
}

}  // namespace gradlink
