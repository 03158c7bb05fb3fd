// The handling of keys that every store shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/base/whole_file.h"
#include "kvstore/key.h"
#include "kvstore/key_table.h"
#include "kvstore/stepping_store.h"
#include "kvstore/store.h"
#include "kvstore/store_checks.h"

namespace gradlink {

/// `KeyT`: a Key with the store's own data.
template <class KeyT, class Base = Store>
class KeyedStore : public Base {
 public:
  KeyId define(const std::string& name, DType dtype, std::size_t count,
               std::size_t rowLength) override {
    checkRowLength(name, count, rowLength);
    return add(Key{0, name, dtype, count, rowLength});
  }

 protected:
  /// Allocates the value. Called under the keys' lock; an exception leaves no key behind.
  virtual std::unique_ptr<KeyT> makeKey(Key) = 0;

  KeyId add(Key key) {
    const std::lock_guard lock(keysMutex_);
    key.id = keys_.next(key.name);
    const std::string name = key.name;
    return keys_.add(name, makeKey(std::move(key))).id;
  }
  /// Calls `each(key, operation)` in order under the keys' lock. Throws if an operation does not
  /// fit.
  template <class Each>
  void forEachChecked(std::vector<Operation>& operations, const Each& each) {
    const std::lock_guard lock(keysMutex_);
    for (Operation& operation : operations) {
      KeyT& key = keys_.at(operation.key);
      checkOperation(operation, key);
      each(key, operation);
    }
  }
  /// Null for an unknown name.
  KeyT* keyNamed(const std::string& name) const {
    const std::lock_guard lock(keysMutex_);
    return keys_.named(name);
  }
  std::vector<KeyT*> allKeys() const {
    const std::lock_guard lock(keysMutex_);
    return keys_.all();
  }

  /// Guards the rest: keys are defined while others are used on another thread.
  mutable std::mutex keysMutex_;
  KeyTable<KeyT> keys_;
};

/// A store of values and optimizer states; its engine keeps settings and fences in order.
template <class KeyT>
class ValueStore : public KeyedStore<KeyT, SteppingStore> {
 public:
  /// Nothing may be pending.
  const std::shared_ptr<Optimizer>& optimizer() const { return rule_.optimizer; }
  void setOptimizer(std::shared_ptr<Optimizer> optimizer) override { set({optimizer, nullptr}); }
  void setUpdater(std::shared_ptr<ExternalUpdater> updater) override { set({nullptr, updater}); }
  void setLearningRate(double value, std::shared_ptr<Ticket> ticket) override {
    fence([this, value] { changeLearningRate(rule_.optimizer.get(), value); }, std::move(ticket));
  }
  void barrier(std::shared_ptr<Ticket> ticket) override { fence(nullptr, std::move(ticket)); }
  void saveStates(const std::string& file, bool dumpOptimizer,
                  std::shared_ptr<Ticket> ticket) override {
    fence([this, file, dumpOptimizer] { writeFileAtomically(file, statesOf(dumpOptimizer)); },
          std::move(ticket));
  }
  void loadStates(const std::string& file, std::shared_ptr<Ticket> ticket) override {
    fence(
        [this, file] {
          restore(readFittingStates(file, rule_.optimizer, [this](const std::string& name) {
            return shapeOf(this->keyNamed(name));
          }));
        },
        std::move(ticket));
  }
  KeyId definePart(const std::string& name, DType dtype, std::size_t count,
                   std::size_t first) override {
    return this->add(Key{0, name, dtype, count, 1, first});
  }
  void copyStates(std::shared_ptr<std::vector<std::uint8_t>> to,
                  std::shared_ptr<Ticket> ticket) override {
    fence([this, to = std::move(to)] { *to = statesOf(false); }, std::move(ticket));
  }
  void takeStates(FittingStates states, std::shared_ptr<Ticket> ticket) override {
    // std::function must be copyable, and states are not.
    const auto shared = std::make_shared<FittingStates>(std::move(states));
    fence([this, shared] { restore(std::move(*shared)); }, std::move(ticket));
  }

 protected:
  using Restored = std::vector<std::pair<Key*, std::shared_ptr<KeyState>>>;
  using Copies = std::vector<std::unique_ptr<OptimizerState>>;

  // ---- of the engine
  virtual void apply(std::function<void()> body) = 0;
  virtual void fence(std::function<void()> body, std::shared_ptr<Ticket>) = 0;

  // ---- in fences and settings
  virtual void ruleChanged() {}
  /// A key's state for saving, or a copy; null before its first step.
  virtual const OptimizerState* stateOf(const KeyT&, Copies&) = 0;
  /// Converts a fitting state to the key's; changes nothing else yet.
  virtual void restoreKey(KeyT&, std::unique_ptr<OptimizerState>, const std::shared_ptr<Optimizer>&,
                          Restored&) = 0;
  virtual void dropState(KeyT& key) { key.state = nullptr; }

  bool hasState(const Key& key) const {
    return key.state && key.state->optimizer == rule_.optimizer;
  }
  std::vector<std::uint8_t> statesOf(bool dumpOptimizer) {
    checkSaveable(rule_.optimizer.get());
    Copies copies;
    std::vector<const OptimizerState*> states;
    for (const KeyT* key : this->allKeys()) {
      if (const OptimizerState* const state = stateOf(*key, copies)) states.push_back(state);
    }
    return gradlink::saveStates(*rule_.optimizer, states, dumpOptimizer);
  }
  void restore(FittingStates loaded) {
    this->check({loaded.optimizer, nullptr});
    Restored restored;
    for (auto& state : loaded.states) {
      KeyT& key = *this->keyNamed(state->key);
      restoreKey(key, std::move(state), loaded.optimizer, restored);
    }
    // Nothing has changed up to here.
    rule_ = {loaded.optimizer, nullptr};
    for (KeyT* const key : this->allKeys()) dropState(*key);
    for (auto& [key, state] : restored) key->state = std::move(state);
    ruleChanged();
  }

  /// Guarded by the engine.
  UpdateRule rule_;

 private:
  void set(UpdateRule rule) {
    this->check(rule);
    apply([this, rule = std::move(rule)] {
      rule_ = rule;
      ruleChanged();
    });
  }
};

}  // namespace gradlink
