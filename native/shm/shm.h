// Entry points of the embedded engine.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/communicator.h"
#include "core/wire.h"

namespace gradlink::shm {

/// One communicator that holds `size` ranks of this process. A call is one pass over memory on the
/// thread pool and never waits for a peer. No point-to-point, no split.
std::unique_ptr<Communicator> makeLocalGroup(int size);

struct JoinOptions {
  /// Ranks with the same job and name meet: the launcher's secret, and the application's choice.
  std::string job;
  std::string name;
  int rank = 0;
  int size = 1;
  /// For the rendezvous, and the default of calls.
  double timeoutMs = 30000;
  /// Whether the ranks are threads of this process.
  bool threads = false;
  /// Bytes of a staging slot; 0: the measured default. Tests use small values to get many chunks.
  std::size_t slotBytes = 0;
  /// Checked about every 50 ms during the rendezvous; once true, join throws ERR_CLOSED. May be
  /// null. Lets a terminated worker thread leave before the timeout.
  const std::atomic<bool>* cancelled = nullptr;
  /// Called as often with the missing ranks; throws if waiting is pointless. For ranks that also
  /// share another communicator. May be empty.
  std::function<void(std::span<const int> missing)> look;
};

/// Joins as one rank; blocks until all have come. Throws a timeout that names the missing ranks, or
/// a mismatch if sizes differ or a rank is taken twice.
std::unique_ptr<Communicator> join(const JoinOptions&);

/// The same rendezvous for a wire, with separate names.
std::unique_ptr<Wire> joinWire(const JoinOptions&);

}  // namespace gradlink::shm
