// A thread of a server for some of its shards; a single pipeline uses the receiving thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "kvstore/server/context.h"
#include "kvstore/server/merge.h"
#include "kvstore/server/shard.h"

namespace gradlink::dist {

struct ShardTask {
  enum What : std::uint8_t { message, advance, advanceAll, tick };
  ServerShard* shard;
  What what;
  std::uint32_t piece = 0;
  WireMessage received{};
  /// tick
  Deadline::Clock::time_point now{};
  double timeoutMs = 0;
};

/// The message's header. Throws Error(mismatch) for an invalid one.
Header headerOf(const WireMessage& message);

class Pipeline {
 public:
  Pipeline(ServerContext& context, int index, bool threaded);
  /// Drops queued tasks.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  Merger& merger() { return merger_; }
  /// Called by the receiving thread. The context gets errors. `here`: this thread is idle and runs
  /// small tasks itself while the other sleeps.
  void post(ShardTask task, bool here = false);
  /// Waits until everything posted is done.
  void drain();

 private:
  void run();
  bool takeTasks();
  bool performHere(const ShardTask& task);
  void perform(const ShardTask& task);

  ServerContext& context_;
  Merger merger_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<ShardTask> queue_;
  std::vector<ShardTask> taken_;
  /// The number of tasks, for spinning before a sleep.
  std::atomic<std::size_t> queued_{0};
  bool sleeping_ = false;
  bool busy_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gradlink::dist
