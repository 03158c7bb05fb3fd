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
#include <string>
#include <thread>
#include <vector>

#include "core/communicator.h"
#include "core/error.h"
#include "kvstore/allreduce/agreement.h"
#include "kvstore/allreduce/store.h"
#include "kvstore/base/ordered_queue.h"
#include "kvstore/local/store.h"

namespace gradlink {

/// Something that runs between operations: after everything submitted before, before everything
/// submitted later.
struct AllreduceFence {
  /// On the engine's thread; what it throws is the ticket's error. May be null.
  std::function<void()> body = nullptr;
  /// Whether it then waits for the same fence of the other workers.
  bool meets = false;
  /// The worker leaves with it.
  bool leaves = false;
  std::shared_ptr<Ticket> ticket = nullptr;  // may be null
};

class AllreduceEngine {
 public:
  AllreduceEngine(std::unique_ptr<Communicator> comm, LocalStore& values,
                  const AllreduceStoreOptions& options);
  ~AllreduceEngine();

  int rank() const { return rank_; }

  void define(const std::string& name, DType dtype, std::size_t count);
  /// Operations that are known to fit their keys; `here` is for those that need nobody else.
  void submit(std::vector<Operation> operations, bool here);
  void fence(AllreduceFence fence);
  /// Waits for what the store of this worker still does. For the bodies of fences.
  void waitFor(const std::function<void(std::shared_ptr<Ticket>)>& begin);

  /// Ends the thread; peers that wait for this worker learn that it is gone. Idempotent.
  void stop();
  /// After stop(), when nobody reads the sums any more.
  void close();

  AllreduceTimes times() const;
  std::uint64_t bytesReduced() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  /// Between exchanges that brought nothing: workers whose pending operations are different ones.
  static constexpr std::chrono::microseconds kShortestPause{20};
  static constexpr std::chrono::microseconds kLongestPause{1000};

  struct Key {
    std::string name;
    DType dtype;
    std::size_t count;
    /// From the first operation on that needs the other workers.
    std::deque<Operation> queue;
  };
  /// A fence, or an operation that came after one.
  struct Entry {
    bool isFence() const { return fence.has_value(); }

    std::optional<AllreduceFence> fence;
    Operation operation;
  };
  /// One key's share of a sum.
  struct Share {
    Announcement announced;
    std::size_t offset;              // bytes into the buffer
    Operation* operation = nullptr;  // at the front of its key's queue; null once this worker left
  };

  void serve();
  bool idle() const;
  bool fenceReady() const;
  void step(Lock& lock);
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
  void sum(const std::vector<Announcement>& ready, Lock& lock);
  void sumTogether(const std::vector<Share>& parts, std::size_t bytes, Lock& lock);
  void fill(const std::vector<Share>& parts);
  void reduce(const std::vector<Share>& parts, std::size_t bytes);
  void handOver(const std::vector<Share>& parts, Lock& lock);
  void growBuffer(std::size_t bytes);
  std::byte* at(const Share& part) const { return static_cast<std::byte*>(buffer_) + part.offset; }

  const std::unique_ptr<Communicator> comm_;
  const int rank_;
  LocalStore& values_;
  const AllreduceStoreOptions options_;
  Agreement agreement_;  // of the thread

  void* buffer_ = nullptr;  // of the thread; memory that other workers map
  std::size_t bufferBytes_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Key> keys_;
  std::vector<Announcement> toAnnounce_;
  OrderedQueue<Entry> queue_;
  std::size_t unsummed_ = 0;  // operations that need the others and are on their keys' queues
  bool fenceMeets_ = false;   // the fence under way waits for the other workers
  std::exception_ptr fenceError_;
  bool left_ = false;
  bool calling_ = false;  // the thread is in a call of the communicator
  std::atomic<bool> stopping_ = false;
  std::chrono::microseconds pause_ = kShortestPause;
  std::exception_ptr failure_;  // of the communicator: the store's end
  AllreduceTimes times_;
  std::uint64_t bytesReduced_ = 0;

  /// Tickets end under this lock, whichever thread ends them. Taken last.
  std::mutex tickets_;
  std::condition_variable ended_;

  std::thread thread_;
};

}  // namespace gradlink
