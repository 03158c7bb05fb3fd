// The interface of all key-value stores: on CPU devices (local/local_store.h), GPUs
// (gpu/gpu_store.h), servers (worker/dist_store.h) or all workers (allreduce/allreduce_store.h);
// the last two also with GPUs (staged/gpu_dist_store.h).
//
// Operations are asynchronous: submit() queues one, and its ticket reports the end. Operations on
// one key run in order; those on different keys run in parallel, higher priority first.
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

/// Returned by define(): 0, 1, 2 ... in the order of definition.
using KeyId = std::uint32_t;

/// Reports when all operations of one submit() are done.
class Ticket {
 public:
  /// `done` gets the first error, or null. It is called once, under a lock of the store, so it must
  /// not call the store; before submit() returns if that runs the operations itself.
  explicit Ticket(std::function<void(std::exception_ptr)> done) : done_(std::move(done)) {}

  // ---- for stores: expect each operation before finishing it
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

/// In place of a GPU: host memory.
inline constexpr int kOnHost = -1;

/// One operation on one key. Its memory must stay valid until the ticket is done.
struct Operation {
  OperationKind kind = OperationKind::push;
  KeyId key = 0;
  /// Higher is sooner.
  std::int32_t priority = 0;
  /// One array for each device (init: one), each of the key's length and type.
  std::vector<const void*> in;
  /// As in. An array of `out` may be exactly one of `in`, but may not overlap one otherwise.
  std::vector<void*> out;
  /// Stores of GPUs: each array's GPU, or kOnHost. Empty: array i is on the store's device i.
  std::vector<int> inGpus;
  std::vector<int> outGpus;
  /// rowSparsePull: the requested rows, in any order, repeats allowed.
  std::vector<std::int64_t> rows;
  /// rowSparsePull: `out` holds only these rows, which are sorted and unique. Otherwise it has the
  /// key's length, and other rows become 0.
  bool compact = false;
  /// push: the rows in in[i], consecutive, in any order, repeatable. Empty: the arrays are whole.
  std::vector<std::vector<std::int64_t>> inRows;
  std::shared_ptr<Ticket> ticket;
};

/// An update for an external updater: `stored` is changed in place, `received` only read.
struct UpdateRequest {
  KeyId key;
  DType dtype;
  std::size_t count;
  const void* received;
  void* stored;
};

/// An update rule on its own thread, such as a JavaScript function.
class ExternalUpdater {
 public:
  virtual ~ExternalUpdater() = default;
  /// Returns at once. Calls `done` later, from any thread, with null or an error (the stored value
  /// then stays as `update` left it); the key's other operations wait.
  virtual void update(const UpdateRequest&, std::function<void(std::exception_ptr)> done) = 0;
};

/// Checked operations that can be submitted repeatedly. The store outlives it.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  virtual void submit(std::int32_t priority, const std::shared_ptr<Ticket>&) const = 0;

 protected:
  PreparedCall() = default;
};

struct ShardPlace {
  std::string key;
  int server;
  std::size_t first;
  std::size_t count;
};

/// A worker's traffic and where its time went, since its store was created.
struct WorkerReport {
  /// For workers that sum among themselves.
  struct Sums {
    double reduce = 0;  // seconds in the communicator
    double update = 0;  // seconds of assigning and the optimizer
    std::uint64_t bytesReduced = 0;
  };

  double copy = 0;  // seconds of copies to staging memory, including sums of devices
  double wait = 0;  // seconds of waiting for others with operations pending
  /// None with servers.
  std::optional<Sums> sums = {};
  std::vector<std::uint64_t> bytesSent = {};      // by server
  std::vector<std::uint64_t> bytesReceived = {};  // by server
};

class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Defines a key. `name`: the string key, or the int key in decimal. `rowLength`: elements of a
  /// row for rowSparsePull; divides count. Throws Error(invalidArgument) if the name is taken.
  virtual KeyId define(const std::string& name, DType, std::size_t count,
                       std::size_t rowLength) = 0;

  /// Queues all operations or none; Error(invalidArgument) says which is wrong. `here`: very small
  /// operations may run on this thread before submit() returns, if nothing else is pending.
  virtual void submit(std::vector<Operation> operations, bool here = false) = 0;

  /// Prepares operations, at least one, for repeated submission; their priorities and tickets are
  /// ignored. Only for stores of GPUs, where it saves much; others throw Error(unsupported).
  virtual std::unique_ptr<PreparedCall> prepare(std::vector<Operation> operations);

  /// From the next push on, pushes update the stored value with this optimizer and fresh states.
  /// Null: pushes assign. Replaces an external updater.
  virtual void setOptimizer(std::shared_ptr<Optimizer>) = 0;
  /// Sets the rate from the next push on, keeping states. Fails without an optimizer or with a
  /// schedule.
  virtual void setLearningRate(double value, std::shared_ptr<Ticket>) = 0;
  virtual void setUpdater(std::shared_ptr<ExternalUpdater>) = 0;
  /// Permanent; nothing may be pending. Throws Error(unsupported) if the type has no compression.
  virtual void setCompression(const GradientCompression&) = 0;

  /// Done when everything submitted before is done.
  virtual void barrier(std::shared_ptr<Ticket>) = 0;
  /// Writes the optimizer's states, between earlier and later submissions.
  virtual void saveStates(const std::string& file, bool dumpOptimizer, std::shared_ptr<Ticket>) = 0;
  /// Reads them, in the same order; also a dumped optimizer, which is used from then on.
  virtual void loadStates(const std::string& file, std::shared_ptr<Ticket>) = 0;

  /// Drops queued operations (their tickets are never done) and waits for running ones. Idempotent;
  /// nothing may be submitted afterwards.
  virtual void stop() = 0;

  // ---- of several workers; unless noted, other stores throw Error(unsupported)

  /// Throws if this store supports the rule for no keys.
  virtual void check(const UpdateRule&) const {}
  /// After everything submitted before, the others no longer wait for this worker, which may pull.
  virtual void leave(std::shared_ptr<Ticket>);
  virtual WorkerReport report() const;
  /// As stop(), but the others see a death of this process.
  virtual void drop() { stop(); }

  // ---- with servers

  /// Zeroed memory of the store that servers of this host read in place, or null. Thread-safe.
  virtual void* allocShared(std::size_t /*bytes*/) { return nullptr; }
  virtual void freeShared(void* /*memory*/) {}
  virtual std::vector<ShardPlace> placement() const;
  /// Each server's counters as JSON; ordered like a barrier.
  virtual void serverReports(std::shared_ptr<std::vector<std::string>> into,
                             std::shared_ptr<Ticket>);
  /// Runs every server's handler for this text; done when all have. `op`: the name in errors.
  virtual void command(const std::string& op, const std::string& text, std::shared_ptr<Ticket>);
  /// Handles received answers, on the submitting thread; returns whether to call again soon.
  /// Otherwise the store's thread continues.
  virtual bool look() { return false; }
  /// Lost workers and servers that the servers know of.
  virtual int deadNodes() const { return 0; }

 protected:
  Store() = default;
};

}  // namespace gradlink
