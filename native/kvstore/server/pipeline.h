// A thread of a server that owns some of its shards. With a single pipeline there is no thread: the
// receiving thread does its work on the spot.
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

/// What a shard is to do.
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

/// The message's header. Throws Error(mismatch) for what is not a header.
Header headerOf(const WireMessage& message);

class Pipeline {
 public:
  /// `index` among the server's. `threaded`: with a thread of its own.
  Pipeline(ServerContext& context, int index, bool threaded);
  /// Drops what is queued.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  Merger& merger() { return merger_; }
  /// From the receiving thread. What goes wrong in it is told by the context. `here`: this thread
  /// has nothing else to do, so that it carries out itself what is small while the other sleeps.
  void post(ShardTask task, bool here = false);
  /// Until everything posted is done.
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
  /// Tasks queued, for who spins before it sleeps.
  std::atomic<std::size_t> queued_{0};
  bool sleeping_ = false;
  bool busy_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gradlink::dist
