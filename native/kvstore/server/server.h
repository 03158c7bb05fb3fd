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

/// What an update rule that runs outside the server gets: elements [first, first + count) of a key,
/// all that this server has of it. `stored` is to be changed in place, `received` only read.
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
  /// A worker that dies ends a synchronous store; an asynchronous one carries on when this is set.
  bool tolerateWorkerLoss = false;
  /// Merge pipelines; a shard always goes through the same one. 0: a thread for each core.
  int threads = 0;
  /// How long a round may wait for a worker after the first has pushed it.
  double timeoutMs = 30000;
  /// Called on the receiving thread for each `command`; may be null.
  std::function<void(int worker, const std::string& text)> onCommand;
  /// Pushes change values through it until worker 0 sets an optimizer; may be null. Called on the
  /// threads of the pipelines, for different keys side by side. Throws Error where it fails.
  std::function<void(const ShardUpdate&)> updater;
  /// Notes what the server does, while it is on; may be null. Outlives serve().
  ServerTrace* trace = nullptr;
};

/// What a server did, for reports; `merge` and `update` are seconds of all pipelines together,
/// which work side by side.
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

/// Serves until every worker has left, and returns what it did. Throws Error(peerLost) naming the
/// worker that died where that ends the store, Error(closed) once `stop` is set (looked at about
/// every 50 ms; may be null). The workers have been told by then.
ServerReport serve(std::unique_ptr<Wire> wire, const ServerOptions&,
                   const std::atomic<bool>* stop = nullptr);

}  // namespace gradlink
