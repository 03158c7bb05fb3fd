// A server of the distributed stores: receives, merges, optimizes and answers, without JavaScript.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/kernels/dtype.h"
#include "core/wire.h"
#include "kvstore/server/trace.h"

namespace gradlink {

/// An update for a rule outside the server: this server's elements [first, first + count) of a key.
/// `stored` is changed in place, `received` only read.
struct ShardUpdate {
  const std::string& key;
  DType dtype;
  std::size_t first;
  std::size_t count;
  const void* received;
  void* stored;
};

struct ServerOptions {
  int workers = 1;
  int servers = 1;
  bool asynchronous = false;
  /// Whether an asynchronous store survives the death of a worker.
  bool tolerateWorkerLoss = false;
  /// Merge pipelines; a shard always uses the same one. 0: one for each core.
  int threads = 0;
  /// How long a round may wait for a worker after its first push.
  double timeoutMs = 30000;
  /// Called on the receiving thread for each `command`; may be null.
  std::function<void(int worker, const std::string& text)> onCommand;
  /// The update rule until worker 0 sets an optimizer; may be null. Called on the pipelines'
  /// threads, in parallel for different keys. Throws Error on failure.
  std::function<void(const ShardUpdate&)> updater;
  /// Records the server's work while it is on; may be null. Outlives serve().
  ServerTrace* trace = nullptr;
};

/// A server's counters. `merge` and `update` are seconds summed over all pipelines.
struct ServerReport {
  int server = 0;
  std::uint64_t shards = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytesReceived = 0;
  std::uint64_t bytesSent = 0;
  double merge = 0;
  double update = 0;
  int pipelines = 1;
  double wait = 0;  // seconds the receiving thread had nothing to do
};

/// Serves until every worker has left, and returns the counters. Throws Error(peerLost) naming a
/// dead worker if that ends the store, Error(closed) once `stop` is set (checked about every 50 ms;
/// may be null). The workers have then been told.
ServerReport serve(std::unique_ptr<Wire> wire, const ServerOptions&,
                   const std::atomic<bool>* stop = nullptr);

}  // namespace gradlink
