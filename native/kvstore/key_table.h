// A store's keys by number (from 0) and by unique name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kvstore/base/misuse.h"
#include "kvstore/store.h"

namespace gradlink {

/// Not locked: stores guard their tables. A key keeps its address for the table's lifetime.
template <class Key>
class KeyTable {
 public:
  /// The next key's number. Throws Error(invalidArgument) if the name is taken.
  KeyId next(const std::string& name) const {
    if (numbers_.contains(name)) {
      throw storeMisuse("key " + name + " is initialised already: a key is initialised once");
    }
    return static_cast<KeyId>(keys_.size());
  }
  /// The name must have passed next().
  Key& add(const std::string& name, std::unique_ptr<Key> key) {
    keys_.push_back(std::move(key));
    numbers_.emplace(name, static_cast<KeyId>(keys_.size() - 1));
    return *keys_.back();
  }

  /// Throws Error(invalidArgument) for an unknown number.
  Key& at(KeyId number) const {
    if (number >= keys_.size()) throw storeMisuse("no such key");
    return *keys_[number];
  }
  /// Null for an unknown name.
  Key* named(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? nullptr : keys_[found->second].get();
  }
  bool empty() const { return keys_.empty(); }
  /// By number.
  std::vector<Key*> all() const {
    std::vector<Key*> keys;
    keys.reserve(keys_.size());
    for (const auto& key : keys_) keys.push_back(key.get());
    return keys;
  }

  /// Leaks the keys' memory: a device may still use it.
  void abandon() {
    for (auto& key : keys_) static_cast<void>(key.release());
    keys_.clear();
    numbers_.clear();
  }

 private:
  std::vector<std::unique_ptr<Key>> keys_;
  std::unordered_map<std::string, KeyId> numbers_;
};

}  // namespace gradlink
