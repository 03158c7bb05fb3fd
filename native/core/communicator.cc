#include "core/communicator.h"

#include "core/error.h"
#include "core/window.h"
#include "core/wire.h"

namespace gradlink {

std::unique_ptr<Wire> Communicator::openWire(const CallOptions& /*options*/) {
  throw Error(ErrorCode::unsupported,
              std::string("openWire: the backend ") + backend() + " has no wires; use shm or mpi")
      .stillUsable();
}

std::unique_ptr<Window> Communicator::openWindow(const WindowSpec& /*spec*/,
                                                 const CallOptions& /*options*/) {
  throw Error(ErrorCode::unsupported, std::string("createWindow: the backend ") + backend() +
                                          " has no windows here; use shm, with one rank held")
      .withOp("createWindow")
      .stillUsable();
}

}  // namespace gradlink
