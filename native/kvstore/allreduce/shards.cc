#include "kvstore/allreduce/shards.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kvstore/base/misuse.h"
#include "kvstore/base/whole_file.h"
#include "kvstore/optimizer/math.h"
#include "kvstore/optimizer/state_parts.h"

namespace gradlink {
namespace {

/// Parts begin at whole cache lines, even for the smallest float type.
constexpr std::size_t kCut = 32;

}  // namespace

AllreduceShards::AllreduceShards(int rank, int workers, std::unique_ptr<SteppingStore> store)
    : rank_(rank), workers_(workers), store_(std::move(store)) {}

void AllreduceShards::check(const Optimizer& optimizer) {
  if (!optimizer.math().needsWhole()) return;
  throw storeUnsupported("with shardOptimizer each worker steps a part of every array, and " +
                         optimizer.spec().name +
                         " needs a norm of the whole: open the store without shardOptimizer");
}

std::size_t AllreduceShards::roomOf(std::size_t count) const {
  const std::size_t lines = (count + kCut - 1) / kCut;
  const auto workers = static_cast<std::size_t>(workers_);
  return (lines + workers - 1) / workers * kCut;
}

AllreduceShards::Part AllreduceShards::partOf(int worker, std::size_t count) const {
  const std::size_t room = roomOf(count);
  const std::size_t first = std::min(count, room * static_cast<std::size_t>(worker));
  return {first, std::min(room, count - first)};
}

void AllreduceShards::define(const std::string& name, DType dtype, std::size_t count) {
  const Part part = own(count);
  store_->definePart(name, dtype, part.count, part.first);
  const std::lock_guard lock(mutex_);
  shapes_.emplace(name, StateShape{dtype, count, 1});
}

std::optional<StateShape> AllreduceShards::shapeOf(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = shapes_.find(name);
  return found == shapes_.end() ? std::nullopt : std::optional(found->second);
}

void AllreduceShards::setOptimizer(std::shared_ptr<Optimizer> optimizer) {
  optimizer_ = std::move(optimizer);
  store_->setOptimizer(optimizer_);
}

std::vector<std::uint8_t> AllreduceShards::states(const Waits& waits) {
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  waits([&](std::shared_ptr<Ticket> done) { store_->copyStates(bytes, std::move(done)); });
  return std::move(*bytes);
}

void AllreduceShards::writeStates(const std::string& file, bool dumpOptimizer,
                                  std::span<const std::vector<std::uint8_t>> parts) const {
  std::vector<std::unique_ptr<OptimizerState>> whole;
  std::unordered_map<std::string, OptimizerState*> named;
  for (const std::vector<std::uint8_t>& part : parts) {
    LoadedStates loaded = gradlink::loadStates(part);
    for (auto& state : loaded.states) {
      const auto [known, isNew] = named.emplace(state->key, state.get());
      if (isNew) {
        whole.push_back(std::move(state));
      } else {
        appendState(*known->second, *state);
      }
    }
  }
  std::vector<const OptimizerState*> states;
  for (const auto& state : whole) {
    const std::optional<StateShape> shape = shapeOf(state->key);
    if (!shape || shape->count != state->count) {
      throw Error(ErrorCode::mismatch, "the workers' states of key " + state->key + " are of " +
                                           std::to_string(state->count) +
                                           " elements together, not of " +
                                           std::to_string(shape ? shape->count : 0) +
                                           ": every worker must have set the same optimizer")
          .stillUsable();
    }
    states.push_back(state.get());
  }
  writeFileAtomically(file, gradlink::saveStates(*optimizer_, states, dumpOptimizer));
}

void AllreduceShards::loadStates(const std::string& file, const Waits& waits) {
  FittingStates fitting = readFittingStates(
      file, optimizer_, [this](const std::string& name) { return shapeOf(name); });
  check(*fitting.optimizer);
  for (auto& state : fitting.states) {
    const Part part = own(state->count);
    state = std::make_unique<OptimizerState>(cutState(*state, part.first, part.count));
  }
  optimizer_ = fitting.optimizer;
  waits([&](std::shared_ptr<Ticket> done) {
    store_->takeStates(std::move(fitting), std::move(done));
  });
}

}  // namespace gradlink
