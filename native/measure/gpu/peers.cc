#include "measure/gpu/peers.h"

#include "core/error.h"
#include "cuda/device.h"

namespace gradlink::measure {

PeerAccess::PeerAccess(const std::vector<Pair>& pairs, bool wanted) {
  if (!wanted && !pairs.empty() && cuda::PeersInUse::any()) {
    throw Error(ErrorCode::unsupported,
                "peer access cannot be disabled while this process has a communicator or a store "
                "that may use it: close it first")
        .withOp("timeGpuCopies")
        .stillUsable();
  }
  for (const auto& [one, other] : pairs) {
    for (const Pair& way : {Pair(one, other), Pair(other, one)}) {
      cuda::Device& from = cuda::Device::get(way.first);
      cuda::Device& to = cuda::Device::get(way.second);
      if (wanted) {
        if (from.enablePeer(to)) granted_.insert(way);
      } else if (from.disablePeer(to)) {
        taken_.insert(way);
      }
    }
  }
}

PeerAccess::~PeerAccess() {
  for (const auto& [from, to] : taken_) {
    try {
      cuda::Device::get(from).enablePeer(cuda::Device::get(to));
    } catch (const Error&) {
      // A broken context: its next user gets the error.
    }
  }
}

}  // namespace gradlink::measure
