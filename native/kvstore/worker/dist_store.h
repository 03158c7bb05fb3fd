// The worker's side of the distributed stores: dist_sync and dist_async. Arrays of this process's
// devices are summed into wire memory piece by piece and pushed; servers merge (server.h).
//
// A push is done when its arrays have been read: failures of what happens to it on the servers
// come with the next operation of the key, or with barrier().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

/// Where a key lies, for reports.
struct ShardPlace {
  std::string key;
  int server;
  std::size_t first;
  std::size_t count;
};

/// Seconds of this worker's engine since the store was made.
struct DistTimes {
  double copy = 0;  // arrays to and from wire memory, sums of devices included
  double wait = 0;  // operations under way, and nothing to do but wait for servers
};

class DistStore : public Store {
 public:
  /// Zeroed memory from which servers of this host read what is pushed; null where there is none
  /// such. Lives no longer than the store. From any thread.
  virtual void* allocShared(std::size_t /*bytes*/) { return nullptr; }
  virtual void freeShared(void* /*memory*/) {}
  /// This worker's rank among the workers.
  virtual int rank() const = 0;
  virtual std::vector<ShardPlace> placement() const = 0;
  virtual std::vector<std::uint64_t> bytesSent() const = 0;      // by server
  virtual std::vector<std::uint64_t> bytesReceived() const = 0;  // by server
  virtual DistTimes times() const = 0;
  /// Each server's counters, as JSON text; in order of submission like a barrier.
  virtual void reports(std::shared_ptr<std::vector<std::string>> into, std::shared_ptr<Ticket>) = 0;
  /// Every server runs its handler for this text (`gradlink serve` prints it); done when all have.
  virtual void command(const std::string& text, std::shared_ptr<Ticket>) = 0;
  /// Handles the answers that have come, on the thread that submitted; whether it is worth calling
  /// again soon. Where it is not, the store's own thread goes on.
  virtual bool look() { return false; }
  /// Ranks that the servers know to be lost, workers and servers.
  virtual int deadNodes() const = 0;
  /// Rounds no longer wait for this worker; it may still pull. After everything submitted before.
  virtual void leave(std::shared_ptr<Ticket>) = 0;
  /// As stop(), but the wire is not closed in good order: the servers learn it as if this process
  /// had died. A stop() afterwards does nothing.
  virtual void drop() = 0;
};

/// Takes the wire over. The wire's ranks: workers, then servers.
std::unique_ptr<DistStore> makeDistStore(std::unique_ptr<Wire> wire, const DistStoreOptions&);

}  // namespace gradlink
