// What every store does alike with its keys, whatever it is made of.
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

/// `KeyT`: a Key with what the store keeps for it.
template <class KeyT, class Base = Store>
class KeyedStore : public Base {
 public:
  KeyId define(const std::string& name, DType dtype, std::size_t count,
               std::size_t rowLength) override {
    checkRowLength(name, count, rowLength);
    return add(Key{0, name, dtype, count, rowLength});
  }

 protected:
  /// With memory for its value. With the keys' lock; where it throws, there is no such key.
  virtual std::unique_ptr<KeyT> makeKey(Key) = 0;

  /// Its number.
  KeyId add(Key key) {
    const std::lock_guard lock(keysMutex_);
    key.id = keys_.next(key.name);
    const std::string name = key.name;
    return keys_.add(name, makeKey(std::move(key))).id;
  }
  /// Calls `each(key, operation)` with the keys' lock, in order. Throws where an operation does not
  /// fit its key.
  template <class Each>
  void forEachChecked(std::vector<Operation>& operations, const Each& each) {
    const std::lock_guard lock(keysMutex_);
    for (Operation& operation : operations) {
      KeyT& key = keys_.at(operation.key);
      checkOperation(operation, key);
      each(key, operation);
    }
  }
  /// Null where no key has that name.
  KeyT* keyNamed(const std::string& name) const {
    const std::lock_guard lock(keysMutex_);
    return keys_.named(name);
  }
  std::vector<KeyT*> allKeys() const {
    const std::lock_guard lock(keysMutex_);
    return keys_.all();
  }

  /// Guards what follows: keys are defined while others are used on another thread.
  mutable std::mutex keysMutex_;
  KeyTable<KeyT> keys_;
};

/// A store that has the values, and the optimizer with its states: settings and fences in the order
/// of submission, which an engine keeps.
template <class KeyT>
class ValueStore : public KeyedStore<KeyT, SteppingStore> {
 public:
  /// Nothing may be under way.
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
    // A function can be copied, and states cannot.
    const auto shared = std::make_shared<FittingStates>(std::move(states));
    fence([this, shared] { restore(std::move(*shared)); }, std::move(ticket));
  }

 protected:
  /// What was read of states, with the keys they are for.
  using Restored = std::vector<std::pair<Key*, std::shared_ptr<KeyState>>>;
  using Copies = std::vector<std::unique_ptr<OptimizerState>>;

  // ---- of the engine
  virtual void apply(std::function<void()> body) = 0;
  virtual void fence(std::function<void()> body, std::shared_ptr<Ticket>) = 0;

  // ---- in fences and settings
  /// The rule is another from here on.
  virtual void ruleChanged() {}
  /// A key's state for saving, or a copy of it; null where the optimizer has not stepped it.
  virtual const OptimizerState* stateOf(const KeyT&, Copies&) = 0;
  /// Makes the key's state of one that fits it; nothing else changes yet.
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

  /// As the engine guards it.
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
