// The thread of an `allreduce` store: agrees with the other workers, sums what is ready, and hands
// the sums to the store of this worker.
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

/// What runs between operations.
struct AllreduceFence {
  /// On the engine's thread; what it throws is the ticket's error. May be null.
  std::function<void()> body = nullptr;
  /// Whether it then waits for the same fence of the other workers.
  bool meets = false;
  /// Of one that meets: gets what every worker keeps for its parts, on the first that has not left.
  std::function<void(std::span<const std::vector<std::uint8_t>> states)> gathers = nullptr;
  /// The worker leaves with it.
  bool leaves = false;
  std::shared_ptr<Ticket> ticket = nullptr;  // may be null
};

class AllreduceEngine {
 public:
  /// `shards`: null where every worker steps all of a key.
  AllreduceEngine(std::unique_ptr<Communicator> comm, LocalStore& values, AllreduceShards* shards,
                  const AllreduceStoreOptions& options);
  ~AllreduceEngine();

  int rank() const { return rank_; }

  /// In the order of their numbers.
  void define(Key key);
  /// Operations that are known to fit their keys; `here` is for those that need nobody else.
  void submit(std::vector<Operation> operations, bool here);
  void fence(AllreduceFence fence);
  /// Waits for what the store of this worker still does. For the bodies of fences.
  void waitFor(const std::function<void(std::shared_ptr<Ticket>)>& begin);
  /// For the bodies of fences: what steps is another from here on. `what` says all that decides a
  /// step, as other workers that step alike say it; with `further`, beside what was said before.
  void changeRule(const std::string& what, bool further = false);

  /// Ends the thread; peers that wait for this worker learn that it is gone. Idempotent.
  void stop();
  /// After stop(), when nobody reads the sums any more.
  void close();

  WorkerReport report() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// Between exchanges that brought nothing: workers whose pending operations are different ones.
  static constexpr std::chrono::microseconds kShortestPause{20};
  static constexpr std::chrono::microseconds kLongestPause{1000};

  /// An operation on its key's queue.
  struct Waiting {
    bool ofRows() const { return !operation.inRows.empty(); }

    Operation operation;
    /// Of a push of rows: what this worker gives to the sum of all.
    std::vector<SomeRows> given() const {
      if (!touched.rows.empty()) return {{touched.data.data(), touched.rows}};
      std::vector<SomeRows> parts;
      for (std::size_t i = 0; i < operation.in.size(); ++i) {
        parts.push_back({operation.in[i], operation.inRows[i]});
      }
      return parts;
    }
    /// Its rows added up, once it has been announced. None of halves: those are added up where all
    /// have come, and rounded once.
    SortedRows touched = {};
  };
  struct SummedKey : Key {
    explicit SummedKey(Key key) : Key(std::move(key)) {}

    /// From the first operation on that needs the other workers.
    std::deque<Waiting> queue;
    /// Of the thread: whether the shard has what the value has.
    bool sharded = false;
  };
  /// What the others do not know yet.
  struct News {
    Announcement announced;
    Waiting* ofRows = nullptr;  // rows, which are counted when they are told of
  };
  /// One key's share of a sum.
  struct Share {
    bool ofRows() const { return !rows.empty(); }

    Announcement announced;
    std::vector<std::uint32_t> rows;  // by worker; none: whole arrays
    std::size_t offset;               // bytes into the buffer, of rows into each worker's block
    Waiting* waiting = nullptr;       // at the front of its key's queue; null once this worker left
    SummedKey* key = nullptr;         // null: made after this worker had left
    const std::byte* sum = nullptr;   // what the store of this worker gets, unless of rows
    Partial partial;                  // what is summed
  };

  void serve();
  bool idle() const;
  bool fenceReady() const;
  void step(Lock& lock);
  bool tell(Lock& lock);
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
  void countRows(News& news) const;
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
  Agreement agreement_;  // of the thread

  void* buffer_ = nullptr;  // of the thread; memory that other workers map
  std::size_t bufferBytes_ = 0;
  AlignedBuffer whole_;  // of the thread; values whose parts lie apart in the buffer

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<SummedKey> keys_;
  std::vector<News> toAnnounce_;
  FenceQueue<Operation, AllreduceFence> queue_;
  std::size_t unsummed_ = 0;  // operations that need the others and are on their keys' queues
  bool fenceMeets_ = false;   // the fence under way waits for the other workers
  std::exception_ptr fenceError_;
  bool left_ = false;
  std::uint16_t changes_ = 0;  // of what steps
  std::uint64_t setRule_ = 0;  // a fingerprint of it, as it was set
  std::uint64_t rule_ = 0;     // with what came further
  bool calling_ = false;       // the thread is in a call of the communicator
  std::atomic<bool> stopping_ = false;
  std::chrono::microseconds pause_ = kShortestPause;
  std::exception_ptr failure_;  // of the communicator: the store's end
  WorkerReport spent_{.sums = WorkerReport::Sums{}};

  /// Tickets end under this lock, whichever thread ends them. Taken last.
  std::mutex tickets_;
  std::condition_variable ended_;

  std::thread thread_;
};

}  // namespace gradlink
