// The thread of an `allreduce` store: agrees with other workers, sums, passes sums to its own
// store.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/communicator.h"
#include "core/error.h"
#include "core/kernels/partial.h"
#include "core/memory/aligned_buffer.h"
#include "kvstore/allreduce/allreduce_store.h"
#include "kvstore/allreduce/key_agreement.h"
#include "kvstore/allreduce/shards.h"
#include "kvstore/base/rows.h"
#include "kvstore/key.h"
#include "kvstore/local/local_store.h"
#include "kvstore/queue.h"

namespace gradlink {

struct AllreduceFence {
  /// Called on the engine's thread; an exception is the ticket's error. May be null.
  std::function<void()> body = nullptr;
  /// Whether it then waits for the other workers' fence.
  bool meets = false;
  /// If it meets: gets every worker's states of its parts, on the first worker that has not left.
  std::function<void(std::span<const std::vector<std::uint8_t>> states)> gathers = nullptr;
  bool leaves = false;
  std::shared_ptr<Ticket> ticket = nullptr;  // may be null
};

class AllreduceEngine {
 public:
  /// `shards`: null if every worker steps whole keys.
  AllreduceEngine(std::unique_ptr<Communicator> comm, LocalStore& values, AllreduceShards* shards,
                  const AllreduceStoreOptions& options);
  ~AllreduceEngine();

  int rank() const { return rank_; }

  /// In the order of their numbers.
  void define(Key key);
  /// Operations that fit their keys; `here` is for those that do not need other workers.
  void submit(std::vector<Operation> operations, bool here);
  void fence(AllreduceFence fence);
  /// Waits for this worker's own store. For bodies of fences.
  void waitFor(const std::function<void(std::shared_ptr<Ticket>)>& begin);
  /// The update rule has changed; for bodies of fences. `what` describes everything that affects a
  /// step, equally on all workers; `further` adds to the earlier description.
  void changeRule(const std::string& what, bool further = false);

  /// Ends the thread; peers that wait for this worker learn that it is gone. Idempotent.
  void stop();
  /// After stop(), once nobody reads the sums.
  void close();

  WorkerReport report() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// Between exchanges without progress, when workers have different operations pending.
  static constexpr std::chrono::microseconds kShortestPause{20};
  static constexpr std::chrono::microseconds kLongestPause{1000};

  struct Waiting {
    bool ofRows() const { return !operation.inRows.empty(); }

    Operation operation;
    /// For a push of rows: this worker's part of the sum.
    std::vector<SomeRows> given() const {
      if (!touched.rows.empty()) return {{touched.data.data(), touched.rows}};
      std::vector<SomeRows> parts;
      for (std::size_t i = 0; i < operation.in.size(); ++i) {
        parts.push_back({operation.in[i], operation.inRows[i]});
      }
      return parts;
    }
    /// Its summed rows, once announced. Empty for halves, which are summed over all workers.
    SortedRows touched = {};
  };
  struct SummedKey : Key {
    explicit SummedKey(Key key) : Key(std::move(key)) {}

    /// From the first operation on that needs the other workers.
    std::deque<Waiting> queue;
    /// Whether the shard is up to date with the value. Used by the engine's thread.
    bool sharded = false;
  };
  struct Unannounced {
    Announcement announced;
    Waiting* ofRows = nullptr;  // rows, which are counted at the announcement
  };
  struct Share {
    bool ofRows() const { return !rows.empty(); }

    Announcement announced;
    std::vector<std::uint32_t> rows;  // by worker; empty: whole arrays
    std::size_t offset;          // byte offset in the buffer, or for rows in each worker's block
    Waiting* waiting = nullptr;  // at the front of its key's queue; null if this worker has left
    SummedKey* key = nullptr;    // null: defined after this worker left
    const std::byte* sum = nullptr;  // for this worker's own store, unless of rows
    Partial partial;                 // the type of the sum
  };

  void serve();
  bool idle() const;
  bool fenceReady() const;
  void step(Lock& lock);
  bool announceNew(Lock& lock);
  void call(Lock& lock, const std::function<void()>& body);
  void pauseFor(Lock& lock);
  void endForAll(const std::function<void()>& body);
  void enqueue(Operation operation, bool here);
  void forward(Operation operation, bool here);
  void runFence(Lock& lock);
  void endFence();
  std::shared_ptr<Ticket> relay(std::shared_ptr<Ticket> ticket);
  void finish(const std::shared_ptr<Ticket>& ticket, const std::exception_ptr& error);
  void fail(const Error& error);

  // ---- allreduce/sums.cc
  void sum(std::vector<ReadySum>&& ready, Lock& lock);
  std::size_t roomOf(const ReadySum& ready) const;
  std::size_t blocks(const Share& part) const;
  void sumTogether(std::vector<Share>& parts, std::size_t bytes, Lock& lock);
  void fill(const std::vector<Share>& parts);
  void reduce(const std::vector<Share>& parts, std::size_t bytes);
  void handOver(const std::vector<Share>& parts, std::size_t bytes, Lock& lock);
  void growBuffer(std::size_t bytes);
  std::byte* at(const Share& part) const { return static_cast<std::byte*>(buffer_) + part.offset; }

  // ---- allreduce/rows.cc
  void countRows(Unannounced& unannounced) const;
  void fillRows(const std::vector<Share>& parts, std::size_t block);
  void gatherRows(std::size_t block);
  void giveRows(const Share& part, std::size_t block, Operation& to) const;
  // ---- allreduce/steps.cc
  std::size_t shardRoomOf(const Announcement& announced, DType dtype) const;
  void stepTogether(std::vector<Share>& parts, std::size_t room, Lock& lock);
  void checkStep(const Share& part) const;
  void fillShards(const std::vector<Share>& parts, std::size_t room);
  void refreshShard(const Share& part);
  void stepShards(const std::vector<Share>& parts, std::size_t room);
  void joinShards(std::vector<Share>& parts, std::size_t room);
  void gatherStates(Lock& lock);
  std::vector<std::vector<std::uint8_t>> gather(const std::vector<std::uint8_t>& own);
  AllreduceShards::Waits waits();

  const std::unique_ptr<Communicator> comm_;
  const int rank_;
  LocalStore& values_;
  AllreduceShards* const shards_;
  const AllreduceStoreOptions options_;
  Agreement agreement_;  // used by the engine's thread

  void* buffer_ = nullptr;  // used by the engine's thread; other workers map it
  std::size_t bufferBytes_ = 0;
  AlignedBuffer
      whole_;  // used by the engine's thread; values whose parts are not contiguous in the buffer

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<SummedKey> keys_;
  std::vector<Unannounced> toAnnounce_;
  FenceQueue<Operation, AllreduceFence> queue_;
  std::size_t unsummed_ = 0;  // operations on their keys' queues that need the others
  bool fenceMeets_ = false;   // the running fence waits for the other workers
  std::exception_ptr fenceError_;
  bool left_ = false;
  std::uint16_t changes_ = 0;  // of the update rule
  std::uint64_t setRule_ = 0;  // the rule's fingerprint when it was set
  std::uint64_t rule_ = 0;     // including later changes
  bool calling_ = false;       // the thread is in a call of the communicator
  std::atomic<bool> stopping_ = false;
  std::chrono::microseconds pause_ = kShortestPause;
  std::exception_ptr failure_;  // of the communicator: ends the store
  WorkerReport spent_{.sums = WorkerReport::Sums{}};

  /// Tickets end under this lock on any thread. Taken last.
  std::mutex tickets_;
  std::condition_variable ended_;

  std::thread thread_;
};

}  // namespace gradlink
