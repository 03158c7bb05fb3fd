// The worker's side of the distributed stores dist_sync and dist_async. The devices' arrays are
// summed into wire memory piece by piece and pushed; servers merge (server/server.h).
//
// A push is done when its arrays have been read: its failures on the servers come with the key's
// next operation, or with barrier().
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
  /// Arrays of a push of this worker.
  std::size_t devices = 1;
  /// Every push updates by itself, without waiting for other workers.
  bool asynchronous = false;
  /// Keys of at least this many elements are cut evenly over all servers (MXNet's bound).
  std::size_t bigArrayBound = 1'000'000;
  /// Bytes of unread pushes before the next one waits.
  std::size_t mostStagedBytes = 64 << 20;
  double timeoutMs = 30000;
  /// How long submitters of small operations then call look(); 0: never. Needs ranks with cores.
  double lookNanoseconds = 0;
};

/// Takes over the wire, whose ranks are the workers, then the servers.
std::unique_ptr<Store> makeDistStore(std::unique_ptr<Wire> wire, const DistStoreOptions&);

}  // namespace gradlink
