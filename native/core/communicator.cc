#include "core/communicator.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "core/wire.h"

namespace gradlink {

void Communicator::counted(CountedCall& call, const CallOptions& options) {
  runCounted(*this, call, options);
}

void Communicator::neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                                     std::span<const NeighborBlock> sources,
                                     std::span<const int> destinations,
                                     const CallOptions& options) {
  gradlink::neighborAllGather(*this, in, count, dtype, out, sources, destinations, options);
}

void Communicator::pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                              double selfWeight, double pairWeight, const CallOptions& options) {
  gradlink::pairGossip(*this, in, out, count, dtype, peer, selfWeight, pairWeight, options);
}

std::unique_ptr<Wire> Communicator::openWire(const CallOptions& /*options*/) {
  throw unsupported("openWire",
                    std::string("the backend ") + backend() + " has no wires; use shm or mpi");
}

std::unique_ptr<Window> Communicator::openWindow(const WindowSpec& /*spec*/,
                                                 const CallOptions& /*options*/) {
  throw unsupported("createWindow", std::string("the backend ") + backend() +
                                        " has no windows here; use shm, with one rank held");
}

}  // namespace gradlink
