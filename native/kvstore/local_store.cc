#include "kvstore/local_store.h"

#include <algorithm>
#include <utility>

#include "core/cache.h"
#include "core/error.h"
#include "kvstore/whole_file.h"

namespace gradlink {
namespace {

Error misuse(const std::string& message) {
  return Error(ErrorCode::invalidArgument, message).stillUsable();
}

}  // namespace

LocalStore::LocalStore(Placement placement, std::size_t devices)
    : placement_(placement), devices_(devices), cacheBytes_(lastLevelCacheBytes()) {}

LocalStore::~LocalStore() { stop(); }

void LocalStore::stop() { scheduler_.stop(); }

KeyId LocalStore::define(const std::string& name, DType dtype, std::size_t count,
                         std::size_t rowLength) {
  if (rowLength == 0 || count % rowLength != 0) {
    throw misuse("key " + name + ": rows of " + std::to_string(rowLength) +
                 " elements do not divide " + std::to_string(count) + " elements");
  }
  const std::lock_guard lock(keysMutex_);
  if (names_.contains(name)) {
    throw misuse("key " + name + " is initialised already: a key is initialised once");
  }
  const auto id = static_cast<KeyId>(lanes_.size());
  lanes_.push_back(std::make_unique<KeyLane>(scheduler_, rule_, compression_.get(), id, name, dtype,
                                             count, rowLength));
  names_.emplace(name, id);
  valueBytes_ += count * sizeOf(dtype);
  return id;
}

/// The lane of an operation that fits it; throws where it does not. keysMutex_ is held.
KeyLane& LocalStore::laneFor(const Operation& operation) const {
  if (operation.key >= lanes_.size()) throw misuse("no such key");
  KeyLane& lane = *lanes_[operation.key];
  const bool takes = operation.kind == OperationKind::init ||
                     operation.kind == OperationKind::push ||
                     operation.kind == OperationKind::pushPull;
  if (takes == operation.in.empty()) {
    throw misuse("key " + lane.name + ": an operation has " + (takes ? "no" : "an unwanted") +
                 " input array");
  }
  const auto rows = static_cast<std::int64_t>(lane.count / lane.rowLength);
  for (const std::int64_t row : operation.rows) {
    if (row < 0 || row >= rows) {
      throw misuse("key " + lane.name + " has " + std::to_string(rows) + " rows, there is no row " +
                   std::to_string(row));
    }
  }
  return lane;
}

KeyLane* LocalStore::laneNamed(const std::string& name) const {
  const std::lock_guard lock(keysMutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : lanes_[found->second].get();
}

std::vector<KeyLane*> LocalStore::allLanes() const {
  const std::lock_guard lock(keysMutex_);
  std::vector<KeyLane*> lanes;
  for (const auto& lane : lanes_) lanes.push_back(lane.get());
  return lanes;
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
      KeyLane& lane = laneFor(operation);
      auto item = std::make_unique<KeyItem>();
      item->priority = operation.priority;
      item->bytes = lane.bytes() * (operation.in.size() + operation.out.size() + 1);
      item->ticket = operation.ticket;
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
  scheduler_.fence(
      [this, value] {
        if (!rule_.optimizer)
          throw misuse("there is no learning rate to set: set an optimizer first");
        rule_.optimizer->setLearningRate(value);
      },
      std::move(ticket));
}

void LocalStore::setUpdater(std::shared_ptr<ExternalUpdater> updater) {
  scheduler_.apply([this, updater = std::move(updater)] { rule_ = {nullptr, updater}; });
}

void LocalStore::setCompression(const GradientCompression& compression) {
  if (placement_ == Placement::host) {
    throw Error(
        ErrorCode::unsupported,
        "a local store has no gradient compression: it merges on the host, so nothing leaves "
        "a device compressed; use the type 'device'")
        .stillUsable();
  }
  if (!allLanes().empty()) throw misuse("gradient compression must be set before the first init");
  if (compression_) throw misuse("gradient compression is set already, and for good");
  compression_ = std::make_unique<const GradientCompression>(compression);
}

void LocalStore::barrier(std::shared_ptr<Ticket> ticket) {
  scheduler_.fence(nullptr, std::move(ticket));
}

void LocalStore::saveStates(const std::string& file, bool dumpOptimizer,
                            std::shared_ptr<Ticket> ticket) {
  scheduler_.fence([this, file, dumpOptimizer] { writeStates(file, dumpOptimizer); },
                   std::move(ticket));
}

void LocalStore::loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) {
  scheduler_.fence([this, file] { readStates(file); }, std::move(ticket));
}

void LocalStore::writeStates(const std::string& file, bool dumpOptimizer) const {
  if (!rule_.optimizer)
    throw misuse("there are no optimizer states to save: set an optimizer first");
  std::vector<const OptimizerState*> states;
  for (const KeyLane* lane : allLanes()) {
    if (lane->state && lane->state->optimizer == rule_.optimizer) {
      states.push_back(lane->state->state.get());
    }
  }
  writeFileAtomically(file, gradlink::saveStates(*rule_.optimizer, states, dumpOptimizer));
}

void LocalStore::readStates(const std::string& file) {
  LoadedStates loaded = [&] {
    const auto bytes = readWholeFile(file);
    try {
      return gradlink::loadStates(bytes);
    } catch (const Error& error) {
      throw misuse(file + ": " + error.what());
    }
  }();
  std::shared_ptr<Optimizer> optimizer = rule_.optimizer;
  if (loaded.spec) {
    optimizer = Optimizer::create(*loaded.spec);
  } else if (!optimizer) {
    throw misuse(file + " holds states of " + loaded.optimizerName +
                 " without the optimizer itself: set that optimizer first");
  } else if (optimizer->spec().name != loaded.optimizerName) {
    throw misuse(file + " holds states of " + loaded.optimizerName +
                 ", but the store's optimizer is " + optimizer->spec().name);
  }
  // All checks come before the first change: a file that does not fit leaves the store as it was.
  for (const auto& state : loaded.states) {
    const KeyLane* const lane = laneNamed(state->key);
    if (lane == nullptr) {
      throw misuse(file + " holds a state of key " + state->key +
                   ", which this store does not have: initialise the keys before loading");
    }
    if (lane->dtype != state->dtype || lane->count != state->count) {
      throw misuse(file + ": key " + state->key + " was " + std::to_string(state->count) + " " +
                   nameOf(state->dtype) + ", here it is " + std::to_string(lane->count) + " " +
                   nameOf(lane->dtype));
    }
    optimizer->checkState(*state);
  }
  optimizer->setNumUpdate(loaded.numUpdate);
  rule_ = {optimizer, nullptr};
  for (KeyLane* const lane : allLanes()) lane->state = nullptr;
  for (auto& loadedState : loaded.states) {
    auto state = std::make_shared<KeyState>();
    state->optimizer = optimizer;
    state->made = true;
    KeyLane* const lane = laneNamed(loadedState->key);
    state->state = std::move(loadedState);
    lane->state = std::move(state);
  }
}

}  // namespace gradlink
