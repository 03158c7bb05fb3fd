// Ways into the embedded engine.
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

/// One communicator that holds `size` ranks of this process: all buffers of a call are known at
/// once, so a call is one pass over memory on the thread pool, and never waits for a peer. No
/// point-to-point, no split.
std::unique_ptr<Communicator> makeLocalGroup(int size);

struct JoinOptions {
  /// Ranks that give the same job and name meet. Names are the application's; the job is the
  /// launcher's secret.
  std::string job;
  std::string name;
  int rank = 0;
  int size = 1;
  /// Until everybody has come, and the default for each call.
  double timeoutMs = 30000;
  /// The ranks are threads of this process, not processes of this host.
  bool threads = false;
  /// Bytes of one staging slot between processes; 0 takes the measured default. For tests: a small
  /// value reaches the many-chunk paths cheaply.
  std::size_t slotBytes = 0;
  /// Looked at about every 50 ms while waiting for the others: once true, join gives up with
  /// ERR_CLOSED. May be null. Lets a worker thread or process that is going away leave without
  /// sitting out the timeout.
  const std::atomic<bool>* cancelled = nullptr;
  /// Called as often, with the ranks that are known to be missing: throws what makes waiting on
  /// pointless. For ranks that have another communicator, in which they can be seen. May be empty.
  std::function<void(std::span<const int> missing)> look;
};

/// Joins as one rank. Blocks until all have come. Throws timeout naming the missing ranks, mismatch
/// where sizes differ or a rank is taken twice.
std::unique_ptr<Communicator> join(const JoinOptions&);

/// The same rendezvous for a wire: who joins so meets those who join so, under a name of their own.
std::unique_ptr<Wire> joinWire(const JoinOptions&);

}  // namespace gradlink::shm
