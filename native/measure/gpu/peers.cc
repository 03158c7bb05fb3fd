#include "measure/gpu/peers.h"

#include <map>
#include <mutex>

#include "core/error.h"
#include "cuda/device.h"

namespace gradlink::measure {
namespace {

/// What measurements were granted that nobody had before, and how many of them use it.
struct Granted {
  std::mutex mutex;
  std::map<PeerAccess::Pair, int> users;
};

Granted& granted() {
  static Granted granted;
  return granted;
}

/// Takes back one that nobody uses; false where there is none. The mutex is held.
bool makeRoom(cuda::Device& from) {
  if (cuda::PeersInUse::any()) return false;
  auto& users = granted().users;
  for (auto one = users.begin(); one != users.end(); ++one) {
    const auto& [way, count] = *one;
    if (way.first != from.ordinal() || count > 0) continue;
    from.disablePeer(cuda::Device::get(way.second));
    users.erase(one);
    return true;
  }
  return false;
}

/// The mutex is held.
bool grant(const PeerAccess::Pair& way) {
  cuda::Device& from = cuda::Device::get(way.first);
  cuda::Device& to = cuda::Device::get(way.second);
  const bool had = from.reachesAlready(to);
  bool full = false;
  bool reaches = from.enablePeer(to, &full);
  while (full && makeRoom(from)) reaches = from.enablePeer(to, &full);
  if (!reaches) return false;
  auto& users = granted().users;
  if (!had) users.try_emplace(way, 0);
  if (const auto ours = users.find(way); ours != users.end()) ++ours->second;
  return true;
}

}  // namespace

PeerAccess::PeerAccess(const std::vector<Pair>& pairs, bool wanted) : PeerAccess() {
  if (!wanted && !pairs.empty() && cuda::PeersInUse::any()) {
    throw Error(ErrorCode::unsupported,
                "peer access cannot be disabled while this process has a communicator or a store "
                "that may use it: close it first")
        .withOp("timeGpuCopies")
        .stillUsable();
  }
  const std::lock_guard lock(granted().mutex);
  for (const auto& [one, other] : pairs) {
    for (const Pair& way : {Pair(one, other), Pair(other, one)}) {
      if (wanted) {
        if (!granted_.contains(way) && grant(way)) granted_.insert(way);
      } else if (cuda::Device::get(way.first).disablePeer(cuda::Device::get(way.second))) {
        taken_.insert(way);
      }
    }
  }
}

PeerAccess::~PeerAccess() {
  const std::lock_guard lock(granted().mutex);
  for (const Pair& way : granted_) {
    const auto ours = granted().users.find(way);
    if (ours != granted().users.end()) --ours->second;
  }
  for (const auto& [from, to] : taken_) {
    try {
      cuda::Device::get(from).enablePeer(cuda::Device::get(to));
    } catch (const Error&) {
      // A broken context: its next user gets the error.
    }
  }
}

}  // namespace gradlink::measure
