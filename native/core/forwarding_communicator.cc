#include "core/forwarding_communicator.h"

#include "core/window.h"
#include "core/wire.h"

namespace gradlink {

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
