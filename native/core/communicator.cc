#include "core/communicator.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/neighbors.h"
#include "core/window.h"
#include "core/wire.h"

namespace gradlink {

void Communicator::neighborAllGather(const void* in, std::size_t count, DType dtype, void* out,
                                     std::span<const NeighborBlock> sources,
                                     std::span<const int> destinations, const CallOptions& o) {
  const NeighborGather own{heldRanks()[0], in, count, out, sources, destinations};
  run({.shape = {Kind::neighborAllGather, dtype}, .options = o, .gathers = {&own, 1}});
}

void Communicator::pairGossip(const void* in, void* out, std::size_t count, DType dtype, int peer,
                              double selfWeight, double pairWeight, const CallOptions& o) {
  const Gossip own{0, peer, in, out, count, selfWeight, pairWeight};
  run({.shape = {Kind::pairGossip, dtype}, .options = o, .pairs = {&own, 1}});
}

void Communicator::send(const void* data, std::size_t count, DType dtype, int destination, int tag,
                        const CallOptions& o) {
  Message one{0, destination, tag, true, dtype, count, const_cast<void*>(data)};
  run({.shape = {Kind::send, dtype}, .options = o, .messages = {&one, 1}});
}

Received Communicator::receive(void* data, std::size_t count, DType dtype, int source, int tag,
                               const CallOptions& o) {
  Message one{0, source, tag, false, dtype, count, data};
  run({.shape = {Kind::receive, dtype}, .options = o, .messages = {&one, 1}});
  return one.got;
}

void Communicator::compose(const Call& call) {
  if (isCounted(call.shape.kind)) return runCounted(*this, call);
  if (call.shape.kind == Kind::neighborAllGather) return runNeighborAllGather(*this, call);
  if (call.shape.kind == Kind::pairGossip) return runPairGossip(*this, call);
  throw unsupported(call.op(), std::string("the backend ") + backend() + " has no such call");
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
