#include "core/forwarding_communicator.h"

#include "core/window.h"
#include "core/wire.h"

namespace gradlink {

void ForwardingCommunicator::neighborAllReduce(const Buffers& b, std::size_t count, DType dtype,
                                               std::span<const Neighborhood> neighborhoods,
                                               const CallOptions& o) {
  inner_->neighborAllReduce(b, count, dtype, neighborhoods, o);
}

void ForwardingCommunicator::neighborAllGather(const void* in, std::size_t count, DType dtype,
                                               void* out, std::span<const NeighborBlock> sources,
                                               std::span<const int> destinations,
                                               const CallOptions& o) {
  inner_->neighborAllGather(in, count, dtype, out, sources, destinations, o);
}

void ForwardingCommunicator::pairGossip(const void* in, void* out, std::size_t count, DType dtype,
                                        int peer, double selfWeight, double pairWeight,
                                        const CallOptions& o) {
  inner_->pairGossip(in, out, count, dtype, peer, selfWeight, pairWeight, o);
}

void ForwardingCommunicator::send(const void* data, std::size_t count, DType dtype, int destination,
                                  int tag, const CallOptions& o) {
  inner_->send(data, count, dtype, destination, tag, o);
}

Received ForwardingCommunicator::receive(void* data, std::size_t count, DType dtype, int source,
                                         int tag, const CallOptions& o) {
  return inner_->receive(data, count, dtype, source, tag, o);
}

std::unique_ptr<Communicator> ForwardingCommunicator::split(int color, int key,
                                                            const CallOptions& o) {
  return inner_->split(color, key, o);
}

std::unique_ptr<Wire> ForwardingCommunicator::openWire(const CallOptions& o) {
  return inner_->openWire(o);
}

std::unique_ptr<Window> ForwardingCommunicator::openWindow(const WindowSpec& spec,
                                                           const CallOptions& o) {
  return inner_->openWindow(spec, o);
}

}  // namespace gradlink
