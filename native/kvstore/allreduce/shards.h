// Of a store without servers whose workers share the optimizer's work: which part of a key each
// worker steps, and this worker's parts, with what the optimizer keeps for them.
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
  /// Elements of a key.
  struct Part {
    std::size_t first;
    std::size_t count;
  };
  /// Runs what `begin` begins with a ticket to its end, and throws what it failed with.
  using Waits = std::function<void(const std::function<void(std::shared_ptr<Ticket>)>& begin)>;

  AllreduceShards(int rank, int workers, std::unique_ptr<SteppingStore> store);

  /// Throws Error(unsupported) where an optimizer needs more of an array than a part of it.
  static void check(const Optimizer& optimizer);

  int workers() const { return workers_; }
  /// The room a part of such a key takes in a buffer, in elements: the same for each worker.
  std::size_t roomOf(std::size_t count) const;
  /// May be empty, for the last workers.
  Part partOf(int worker, std::size_t count) const;
  Part own(std::size_t count) const { return partOf(rank_, count); }

  /// Numbered like the store's.
  void define(const std::string& name, DType, std::size_t count);
  /// The values of this worker's parts, their optimizer and its states.
  SteppingStore& store() { return *store_; }
  void stop() { store_->stop(); }

  // ---- of the engine's thread
  void setOptimizer(std::shared_ptr<Optimizer> optimizer);
  const std::shared_ptr<Optimizer>& optimizer() const { return optimizer_; }
  /// What this worker has, to be joined by joinStates(). Throws where there is no optimizer.
  std::vector<std::uint8_t> states(const Waits& waits);
  /// Writes one file of what the workers had, in their order.
  void writeStates(const std::string& file, bool dumpOptimizer,
                   std::span<const std::vector<std::uint8_t>> parts) const;
  /// Takes this worker's parts out of such a file, or of one that another store wrote.
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
