// For `allreduce` stores that share the optimizer's work: which part of a key each worker steps,
// and this worker's parts with their states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/kernels/dtype.h"
#include "kvstore/optimizer/optimizer.h"
#include "kvstore/stepping_store.h"
#include "kvstore/store_checks.h"

namespace gradlink {

class AllreduceShards {
 public:
  struct Part {
    std::size_t first;
    std::size_t count;
  };
  /// Calls `begin` with a ticket, waits for it and throws its error.
  using Waits = std::function<void(const std::function<void(std::shared_ptr<Ticket>)>& begin)>;

  AllreduceShards(int rank, int workers, std::unique_ptr<SteppingStore> store);

  /// Throws Error(unsupported) for an optimizer that needs more than a part of an array.
  static void check(const Optimizer& optimizer);

  int workers() const { return workers_; }
  /// Elements of a worker's part in a buffer; the same for each worker.
  std::size_t roomOf(std::size_t count) const;
  /// May be empty for the last workers.
  Part partOf(int worker, std::size_t count) const;
  Part own(std::size_t count) const { return partOf(rank_, count); }

  /// Numbered like the store's keys.
  void define(const std::string& name, DType, std::size_t count);
  /// The values of this worker's parts, with their optimizer and states.
  SteppingStore& store() { return *store_; }
  void stop() { store_->stop(); }

  // ---- of the engine's thread
  void setOptimizer(std::shared_ptr<Optimizer> optimizer);
  const std::shared_ptr<Optimizer>& optimizer() const { return optimizer_; }
  /// This worker's states, for writeStates(). Throws without an optimizer.
  std::vector<std::uint8_t> states(const Waits& waits);
  /// Writes one file from all workers' states, in worker order.
  void writeStates(const std::string& file, bool dumpOptimizer,
                   std::span<const std::vector<std::uint8_t>> parts) const;
  /// Loads this worker's parts from such a file, or from another store's.
  void loadStates(const std::string& file, const Waits& waits);

 private:
  std::optional<StateShape> shapeOf(const std::string& name) const;

  const int rank_;
  const int workers_;
  std::shared_ptr<Optimizer> optimizer_;

  /// Guards the shapes: keys are defined while states are read on another thread.
  mutable std::mutex mutex_;
  std::unordered_map<std::string, StateShape> shapes_;
  const std::unique_ptr<SteppingStore> store_;
};

}  // namespace gradlink
