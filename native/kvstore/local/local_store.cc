#include "kvstore/local/local_store.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/memory/cache.h"
#include "kvstore/base/whole_file.h"
#include "kvstore/store_checks.h"

namespace gradlink {
LocalStore::LocalStore(Placement placement, std::size_t devices)
    : placement_(placement), devices_(devices), cacheBytes_(lastLevelCacheBytes()) {}

LocalStore::~LocalStore() { stop(); }

void LocalStore::stop() { scheduler_.stop(); }

KeyId LocalStore::define(const std::string& name, DType dtype, std::size_t count,
                         std::size_t rowLength) {
  checkRowLength(name, count, rowLength);
  return add(name, dtype, count, rowLength, 0);
}

KeyId LocalStore::definePart(const std::string& name, DType dtype, std::size_t count,
                             std::size_t first) {
  return add(name, dtype, count, 1, first);
}

KeyId LocalStore::add(const std::string& name, DType dtype, std::size_t count,
                      std::size_t rowLength, std::size_t first) {
  const std::lock_guard lock(keysMutex_);
  const KeyId id = lanes_.next(name);
  lanes_.add(name, std::make_unique<KeyLane>(scheduler_, rule_, compression_.get(),
                                             Key{id, name, dtype, count, rowLength, first}));
  valueBytes_ += count * sizeOf(dtype);
  return id;
}

KeyLane* LocalStore::laneNamed(const std::string& name) const {
  const std::lock_guard lock(keysMutex_);
  return lanes_.named(name);
}

std::vector<KeyLane*> LocalStore::allLanes() const {
  const std::lock_guard lock(keysMutex_);
  return lanes_.all();
}

void LocalStore::submit(std::vector<Operation> operations, bool here) {
  Scheduler::Submission submission;
  submission.reserve(operations.size());
  {
    const std::lock_guard lock(keysMutex_);
    // Every array of every device once: by the time it is used again, a result is still in the
    // cache or it is not.
    const bool streaming = valueBytes_ * (2 * devices_ + 1) > cacheBytes_;
    for (Operation& operation : operations) {
      KeyLane& lane = lanes_.at(operation.key);
      checkOperation(operation, lane);
      if (!operation.inRows.empty() && lane.compresses()) throw noCompressedRows(lane.name);
      auto item = std::make_unique<KeyItem>();
      item->bytes = lane.bytes() * (operation.in.size() + operation.out.size() + 1);
      item->streaming = streaming;
      item->operation = std::move(operation);
      submission.emplace_back(&lane, std::move(item));
    }
  }
  scheduler_.submit(std::move(submission), here);
}

void LocalStore::setOptimizer(std::shared_ptr<Optimizer> optimizer) {
  scheduler_.apply([this, optimizer = std::move(optimizer)] { rule_ = {optimizer, nullptr}; });
}

void LocalStore::setLearningRate(double value, std::shared_ptr<Ticket> ticket) {
  scheduler_.fence([this, value] { changeLearningRate(rule_.optimizer.get(), value); },
                   std::move(ticket));
}

void LocalStore::setUpdater(std::shared_ptr<ExternalUpdater> updater) {
  scheduler_.apply([this, updater = std::move(updater)] { rule_ = {nullptr, updater}; });
}

void LocalStore::setCompression(const GradientCompression& compression) {
  checkCompressible(placement_ == Placement::host, compression_ != nullptr);
  const std::vector<KeyLane*> lanes = allLanes();
  scheduler_.apply([&] {
    compression_ = std::make_unique<const GradientCompression>(compression);
    for (KeyLane* const lane : lanes) lane->compression = compression_.get();
  });
}

void LocalStore::barrier(std::shared_ptr<Ticket> ticket) {
  scheduler_.fence(nullptr, std::move(ticket));
}

void LocalStore::saveStates(const std::string& file, bool dumpOptimizer,
                            std::shared_ptr<Ticket> ticket) {
  scheduler_.fence(
      [this, file, dumpOptimizer] { writeFileAtomically(file, statesOf(dumpOptimizer)); },
      std::move(ticket));
}

void LocalStore::loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) {
  scheduler_.fence([this, file] { readStates(file); }, std::move(ticket));
}

void LocalStore::copyStates(std::shared_ptr<std::vector<std::uint8_t>> to,
                            std::shared_ptr<Ticket> ticket) {
  scheduler_.fence([this, to = std::move(to)] { *to = statesOf(false); }, std::move(ticket));
}

void LocalStore::takeStates(FittingStates states, std::shared_ptr<Ticket> ticket) {
  // A function can be copied, and states cannot.
  const auto shared = std::make_shared<FittingStates>(std::move(states));
  scheduler_.fence([this, shared] { restore(std::move(*shared)); }, std::move(ticket));
}

std::vector<std::uint8_t> LocalStore::statesOf(bool dumpOptimizer) const {
  checkSaveable(rule_.optimizer.get());
  std::vector<const OptimizerState*> states;
  for (const KeyLane* lane : allLanes()) {
    if (lane->state && lane->state->optimizer == rule_.optimizer) {
      states.push_back(lane->state->state.get());
    }
  }
  return gradlink::saveStates(*rule_.optimizer, states, dumpOptimizer);
}

void LocalStore::readStates(const std::string& file) {
  restore(readFittingStates(file, rule_.optimizer,
                            [this](const std::string& name) { return shapeOf(laneNamed(name)); }));
}

void LocalStore::restore(FittingStates loaded) {
  rule_ = {loaded.optimizer, nullptr};
  for (KeyLane* const lane : allLanes()) lane->state = nullptr;
  for (auto& state : loaded.states) {
    KeyLane* const lane = laneNamed(state->key);
    lane->state = loadedState(loaded.optimizer, std::move(state), *lane);
  }
}

}  // namespace gradlink
