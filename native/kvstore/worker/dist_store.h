// The worker's side of the distributed stores: dist_sync and dist_async. Arrays of this process's
// devices are summed into wire memory piece by piece and pushed; servers merge (server.h).
//
// A push is done when its arrays have been read: failures of what happens to it on the servers
// come with the next operation of the key, or with barrier().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/wire.h"
#include "kvstore/store.h"

namespace gradlink {

struct DistStoreOptions {
  int workers = 1;
  int servers = 1;
  /// Arrays a push of this worker brings.
  std::size_t devices = 1;
  /// Every push updates on its own, nobody waits for the others.
  bool asynchronous = false;
  /// Keys of at least so many elements are cut evenly over all servers (MXNet's bound).
  std::size_t bigArrayBound = 1'000'000;
  /// Bytes of pushes on their way before the next one waits.
  std::size_t mostStagedBytes = 64 << 20;
  double timeoutMs = 30000;
  /// Whoever submits something small from its own thread calls look() afterwards, for so long; 0:
  /// nobody does. For a wire whose ranks have cores.
  double lookNanoseconds = 0;
};

/// Takes the wire over. The wire's ranks: workers, then servers.
std::unique_ptr<Store> makeDistStore(std::unique_ptr<Wire> wire, const DistStoreOptions&);

}  // namespace gradlink
