// What waits to be done to one key, and which key is next: first in, first out within a key;
// between keys the most urgent first, and of those the one that has waited longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kvstore/store.h"

namespace gradlink {

/// How soon a key is to be served.
struct Urgency {
  /// Higher is sooner.
  std::int32_t priority = 0;
  /// Since when it waits.
  std::uint64_t sequence = 0;

  bool soonerThan(const Urgency& other) const {
    return priority != other.priority ? priority > other.priority : sequence < other.sequence;
  }
};

inline OperationKind kindOf(const Operation& operation) { return operation.kind; }
inline std::int32_t priorityOf(const Operation& operation) { return operation.priority; }

/// Keeps its memory: a deque's comes and goes with what is in it. Of an item kindOf()
/// and priorityOf() say what it is.
template <class Item>
class KeyQueue {
 public:
  bool empty() const { return first_ == items_.size(); }
  Item& front() { return items_[first_]; }
  void add(Item item) {
    note(priorityOf(item));
    items_.push_back(std::move(item));
  }
  Item take() {
    Item item = std::move(items_[first_++]);
    if (priorityOf(item) == priority_ && --urgent_ == 0) {
      for (std::size_t i = first_; i < items_.size(); ++i) note(priorityOf(items_[i]));
    }
    if (2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }
  /// Pulls that wait behind a push (or a pull) ride along.
  bool pullIsNext() const { return !empty() && kindOf(items_[first_]) == OperationKind::pull; }

  /// The most urgent item pulls along those that it has to wait for.
  std::int32_t priority() const { return priority_; }

 private:
  void note(std::int32_t priority) {
    if (urgent_ > 0 && priority < priority_) return;
    if (urgent_ == 0 || priority > priority_) urgent_ = 0;
    priority_ = priority;
    ++urgent_;
  }

  std::vector<Item> items_;
  /// Those before it are empty.
  std::size_t first_ = 0;
  /// The highest of them, and how many items have it.
  std::int32_t priority_ = 0;
  std::size_t urgent_ = 0;
};

}  // namespace gradlink
