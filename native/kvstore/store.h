// What a key-value store can do, whatever it is made of: the CPU devices of this process
// (local/local_store.h), its GPUs (gpu/gpu_store.h), servers (worker/dist_store.h), or all workers
// (allreduce/allreduce_store.h); GPUs before either of the last two (staged/staged_store.h).
//
// Every operation is asynchronous: submit() queues it and its ticket tells when it is done.
// Operations on one key run in the order of their submission; operations on different keys run side
// by side, higher priority first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/kernels/dtype.h"

namespace gradlink {

class GradientCompression;
class Optimizer;
struct UpdateRule;

/// What define() returned: 0, 1, 2 ... in the order of definition.
using KeyId = std::uint32_t;

/// Tells the submitter when all operations that share it, which one submit() brings, are done.
class Ticket {
 public:
  /// `done` gets the first error, or null. It is called once, with a lock of the store held: it may
  /// not call the store. Where submit() runs the operations itself, it is called before submit()
  /// returns.
  explicit Ticket(std::function<void(std::exception_ptr)> done) : done_(std::move(done)) {}

  // ---- for stores: each operation is expected before it is finished
  void expect(std::size_t operations = 1) { left_ += operations; }
  void finish(std::exception_ptr error, std::size_t operations = 1) {
    if (error) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    if ((left_ -= operations) == 0) done_(error_);
  }

 private:
  std::function<void(std::exception_ptr)> done_;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<std::size_t> left_ = 0;
};

enum class OperationKind : std::uint8_t {
  init = 0,
  push = 1,
  pull = 2,
  pushPull = 3,
  rowSparsePull = 4
};

/// In place of a GPU: the host's memory.
inline constexpr int kOnHost = -1;

/// One operation on one key. Memory belongs to the submitter and must stay until the ticket is
/// done.
struct Operation {
  OperationKind kind = OperationKind::push;
  KeyId key = 0;
  /// Higher is sooner.
  std::int32_t priority = 0;
  /// One array for each device (init: one array), each of the key's length and type.
  std::vector<const void*> in;
  /// As in. An array of `out` may be one of `in` exactly, but may not overlap one otherwise.
  std::vector<void*> out;
  /// Stores of GPUs: the GPU on which each array lies, or kOnHost. Empty:
  /// array i is on the store's device i. Other stores do not look at them.
  std::vector<int> inGpus;
  std::vector<int> outGpus;
  /// rowSparsePull: the rows wanted, in any order, repeats allowed.
  std::vector<std::int64_t> rows;
  /// rowSparsePull: `out` has room for these rows alone, which are sorted, each once. Otherwise it
  /// is of the key's length, and its other rows become 0.
  bool compact = false;
  /// push: the rows that in[i] holds, one after another, in any order, repeats allowed. Empty: the
  /// arrays are whole.
  std::vector<std::vector<std::int64_t>> inRows;
  std::shared_ptr<Ticket> ticket;
};

/// What an updater that runs outside the store gets: `stored` is to be changed in place, `received`
/// only read.
struct UpdateRequest {
  KeyId key;
  DType dtype;
  std::size_t count;
  const void* received;
  void* stored;
};

/// An update rule that runs on a thread of its own choosing, a JavaScript function for example.
class ExternalUpdater {
 public:
  virtual ~ExternalUpdater() = default;
  /// Returns at once. `done` is called later, from any thread, with null or what went wrong (the
  /// stored value then stays as `update` left it); nothing else of the key runs before.
  virtual void update(const UpdateRequest&, std::function<void(std::exception_ptr)> done) = 0;
};

/// Operations that were checked once, to be queued again and again. The store outlives it.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  /// Queues them once more, with this priority.
  virtual void submit(std::int32_t priority, const std::shared_ptr<Ticket>&) const = 0;

 protected:
  PreparedCall() = default;
};

/// Where a key lies on servers.
struct ShardPlace {
  std::string key;
  int server;
  std::size_t first;
  std::size_t count;
};

/// What a worker has moved since its store was made, and where the time went.
struct WorkerReport {
  /// What workers spend who sum among themselves.
  struct Sums {
    double reduce = 0;  // seconds in the communicator: the sums themselves
    double update = 0;  // seconds of assigning and the optimizer
    std::uint64_t bytesReduced = 0;
  };

  double copy = 0;  // seconds of copies to where arrays travel from, sums of devices included
  double wait = 0;  // seconds with operations under way and nothing to do but wait for the others
  /// None where there are servers.
  std::optional<Sums> sums = {};
  std::vector<std::uint64_t> bytesSent = {};      // by server
  std::vector<std::uint64_t> bytesReceived = {};  // by server
};

class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Makes room for one key. `name`: the string key, or the int key in decimal. `rowLength`:
  /// elements of a row for rowSparsePull; divides count. Throws Error(invalidArgument) where the
  /// name is taken.
  virtual KeyId define(const std::string& name, DType, std::size_t count,
                       std::size_t rowLength) = 0;

  /// Queues operations, all or none (an Error(invalidArgument) says which is wrong). `here`: the
  /// caller allows that very small operations run on its own thread, before submit() returns, where
  /// nothing else is pending.
  virtual void submit(std::vector<Operation> operations, bool here = false) = 0;

  /// The same of operations, at least one, that are submitted more than once: their priorities and
  /// tickets do not count. Throws Error(unsupported) but for stores of GPUs, where it gains much.
  virtual std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations);

  /// From the next push on, pushes update the stored value through this optimizer, with fresh
  /// states. Null: pushes assign. Replaces an external updater.
  virtual void setOptimizer(std::shared_ptr<Optimizer>) = 0;
  /// The optimizer's rate from the next push on, its states kept. Fails where there is no optimizer
  /// or a schedule decides.
  virtual void setLearningRate(double value, std::shared_ptr<Ticket>) = 0;
  /// As setOptimizer with a rule that runs outside the store.
  virtual void setUpdater(std::shared_ptr<ExternalUpdater>) = 0;
  /// From now on for good; nothing may be pending. Throws Error(unsupported) where the type has no
  /// compression.
  virtual void setCompression(const GradientCompression&) = 0;

  /// Done when everything submitted before is done.
  virtual void barrier(std::shared_ptr<Ticket>) = 0;
  /// Writes the optimizer's states, after everything submitted before and before everything
  /// submitted later.
  virtual void saveStates(const std::string& file, bool dumpOptimizer, std::shared_ptr<Ticket>) = 0;
  /// Reads them back; in the same order. With a dumped optimizer, that one is used from here on.
  virtual void loadStates(const std::string& file, std::shared_ptr<Ticket>) = 0;

  /// Drops what is queued (its tickets are never done) and waits for what is running. Idempotent;
  /// nothing may be submitted afterwards.
  virtual void stop() = 0;

  // ---- of several workers. What a store does not have throws Error(unsupported), but where a
  // value says so.

  /// Throws where no keys would make this store take the rule.
  virtual void check(const UpdateRule&) const {}
  /// The others no longer wait for this worker, which may still pull. After everything submitted
  /// before.
  virtual void leave(std::shared_ptr<Ticket>);
  virtual WorkerReport report() const;
  /// As stop(), but the others learn it as if this process had died.
  virtual void drop() { stop(); }

  // ---- with servers

  /// Zeroed memory from which servers of this host read what is pushed; null where there is none
  /// such. Lives no longer than the store. From any thread.
  virtual void* allocShared(std::size_t /*bytes*/) { return nullptr; }
  virtual void freeShared(void* /*memory*/) {}
  virtual std::vector<ShardPlace> placement() const;
  /// Each server's counters, as JSON text; in order of submission like a barrier.
  virtual void serverReports(std::shared_ptr<std::vector<std::string>> into,
                             std::shared_ptr<Ticket>);
  /// Every server runs its handler for this text (`gradlink serve` prints it); done when all have.
  /// `op`: what errors call it.
  virtual void command(const std::string& op, const std::string& text, std::shared_ptr<Ticket>);
  /// Handles the answers that have come, on the thread that submitted; whether it is worth calling
  /// again soon. Where it is not, the store's own thread goes on.
  virtual bool look() { return false; }
  /// Ranks that the servers know to be lost, workers and servers.
  virtual int deadNodes() const { return 0; }

 protected:
  Store() = default;
};

}  // namespace gradlink
