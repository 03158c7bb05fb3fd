// The stores of one process on CPU devices: `local` and `device`.
//
// Both sum in one pass over the devices' arrays, which all lie in this process's memory. They
// differ as the types do: `local` keeps merging and storing on the host and knows no compression;
// `device` does both where the devices are (here: host memory too) and compresses what leaves a
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kvstore/base/compression.h"
#include "kvstore/key_table.h"
#include "kvstore/local/key_lane.h"
#include "kvstore/local/scheduler.h"
#include "kvstore/store.h"

namespace gradlink {

struct FittingStates;

/// Where values are merged and kept.
enum class Placement : std::uint8_t { host = 0, devices = 1 };

class LocalStore final : public Store {
 public:
  LocalStore(Placement placement, std::size_t devices);
  ~LocalStore() override;

  KeyId define(const std::string& name, DType, std::size_t count, std::size_t rowLength) override;
  /// A key that is a part of a larger one: its elements from `first` on, which are stepped here.
  KeyId definePart(const std::string& name, DType, std::size_t count, std::size_t first);
  void submit(std::vector<Operation> operations, bool here = false) override;
  void setOptimizer(std::shared_ptr<Optimizer>) override;
  void setLearningRate(double value, std::shared_ptr<Ticket>) override;
  void setUpdater(std::shared_ptr<ExternalUpdater>) override;
  void setCompression(const GradientCompression&) override;
  void barrier(std::shared_ptr<Ticket>) override;
  void saveStates(const std::string& file, bool dumpOptimizer, std::shared_ptr<Ticket>) override;
  void loadStates(const std::string& file, std::shared_ptr<Ticket>) override;
  /// As saveStates, without the optimizer, into memory.
  void copyStates(std::shared_ptr<std::vector<std::uint8_t>> to, std::shared_ptr<Ticket>);
  /// As loadStates, of states that fit this store's keys.
  void takeStates(FittingStates states, std::shared_ptr<Ticket>);
  void stop() override;

 private:
  KeyLane* laneNamed(const std::string&) const;
  std::vector<KeyLane*> allLanes() const;
  KeyId add(const std::string& name, DType, std::size_t count, std::size_t rowLength,
            std::size_t first);
  std::vector<std::uint8_t> statesOf(bool dumpOptimizer) const;
  void readStates(const std::string& file);
  void restore(FittingStates loaded);

  const Placement placement_;
  const std::size_t devices_;
  // More than this and results do not stay in the caches until they are read.
  const std::size_t cacheBytes_;
  std::unique_ptr<const GradientCompression> compression_;
  UpdateRule rule_;

  /// Guards what follows: keys are defined while states are saved on another thread.
  mutable std::mutex keysMutex_;
  KeyTable<KeyLane> lanes_;
  std::size_t valueBytes_ = 0;

  Scheduler scheduler_;  // last: its threads use the rest
};

}  // namespace gradlink
