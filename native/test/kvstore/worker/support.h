// What tests of distributed stores share: a job of workers and servers that are threads of the
// test's own process.
#pragma once

#include "core/wire.h"
#include "kvstore/server/server.h"
#include "kvstore/worker/dist_store.h"
#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {

struct DistJob {
  int workers = 1;
  int servers = 1;
  std::size_t devices = 1;
  bool asynchronous = false;
  bool tolerateWorkerLoss = false;
  std::size_t bigArrayBound = 1'000'000;
  std::size_t mostStagedBytes = 64 << 20;
  int serverThreads = 1;
  double timeoutMs = 20000;
  std::function<void(int worker, const std::string&)> onCommand;
};

inline std::unique_ptr<Wire> wireOf(const std::string& name, int rank, int size) {
  return shm::joinWire(optionsFor(name, rank, size));
}

inline std::unique_ptr<Store> workerOf(const DistJob& job, const std::string& name, int rank) {
  DistStoreOptions options{.workers = job.workers,
                           .servers = job.servers,
                           .devices = job.devices,
                           .asynchronous = job.asynchronous,
                           .bigArrayBound = job.bigArrayBound,
                           .mostStagedBytes = job.mostStagedBytes,
                           .timeoutMs = job.timeoutMs};
  return makeDistStore(wireOf(name, rank, job.workers + job.servers), options);
}

inline void serveOf(const DistJob& job, const std::string& name, int rank) {
  ServerOptions options{.workers = job.workers,
                        .servers = job.servers,
                        .asynchronous = job.asynchronous,
                        .tolerateWorkerLoss = job.tolerateWorkerLoss,
                        .threads = job.serverThreads,
                        .timeoutMs = job.timeoutMs,
                        .onCommand = job.onCommand};
  serve(wireOf(name, rank, job.workers + job.servers), options);
}

/// Runs body(store, rank) for each worker, and the servers beside them. Returns what each rank
/// threw: workers, then servers.
inline std::vector<std::optional<Error>> runDist(const DistJob& job,
                                                 const std::function<void(Store&, int)>& body) {
  const std::string name = freshName();
  return onThreads(job.workers + job.servers, [&](int rank) {
    if (rank >= job.workers) return serveOf(job, name, rank);
    const auto store = workerOf(job, name, rank);
    body(*store, rank);
    store->stop();
  });
}

/// Push and pull as one operation.
inline void pushPull(Store& store, KeyId key, std::vector<Floats>& in, std::vector<Floats>& out) {
  waitFor([&](auto ticket) {
    Operation made = operation(OperationKind::pushPull, key, in, ticket);
    for (Floats& array : out) made.out.push_back(array.data());
    submitOne(store, std::move(made));
  });
}

}  // namespace gradlink::test
