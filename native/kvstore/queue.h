// What waits in a store and what is next, whatever the store is made of: first in, first out within
// a key; of keys the most urgent first, and of those the one that has waited longest; fences and
// settings in their order between them.
//
// Nothing here is locked. An engine says what has come and what has ended, and takes what is next,
// with threads and locks of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/base/ordered_queue.h"
#include "kvstore/store.h"

namespace gradlink {

/// How soon a key is to be served.
struct Urgency {
  /// Higher is sooner.
  std::int32_t priority = 0;
  /// Since when it could begin.
  std::uint64_t sequence = 0;

  bool operator==(const Urgency&) const = default;

  bool soonerThan(const Urgency& other) const {
    return priority != other.priority ? priority > other.priority : sequence < other.sequence;
  }
};

inline OperationKind kindOf(const Operation& operation) { return operation.kind; }
inline std::int32_t priorityOf(const Operation& operation) { return operation.priority; }

/// What waits to be done to one key. Keeps its memory: a deque's comes and goes with what is in it.
/// Of an item kindOf() and priorityOf() say what it is.
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
  /// Of a key that is listed.
  const Urgency& urgency() const { return urgency_; }

 private:
  template <class KeyT>
  friend class KeyOrder;

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

  // ---- of the order of keys
  Urgency urgency_;
  bool listed_ = false;
  bool blocked_ = false;
};

/// Which key is next. A key has a `queue`, a KeyQueue; it is listed while something of it may
/// begin.
template <class KeyT>
class KeyOrder {
 public:
  /// Joined and not ended.
  std::size_t unfinished() const { return unfinished_; }
  bool empty() const { return listed_ == 0; }

  /// What was admitted waits behind what came before.
  template <class Item>
  void join(KeyT& key, Item item) {
    auto& queue = key.queue;
    ++unfinished_;
    queue.add(std::move(item));
    if (!queue.listed_) return list(key);
    if (queue.priority() <= queue.urgency_.priority) return;
    queue.urgency_.priority = queue.priority();
    push(key);
  }
  /// So many items that were taken have ended.
  void ended(std::size_t items) { unfinished_ -= items; }

  /// Null where nothing may begin. It stays listed.
  KeyT* soonest() {
    while (!heap_.empty() && !isCurrent(heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), isLater);
      heap_.pop_back();
    }
    return heap_.empty() ? nullptr : heap_.front().key;
  }
  /// Unless nothing of it may begin, or it is listed.
  void list(KeyT& key) {
    auto& queue = key.queue;
    if (queue.listed_ || queue.blocked_ || queue.empty()) return;
    queue.urgency_ = {queue.priority(), ++sequence_};
    queue.listed_ = true;
    ++listed_;
    push(key);
  }
  void unlist(KeyT& key) {
    if (key.queue.listed_) --listed_;
    key.queue.listed_ = false;
  }
  /// Nothing more of the key may begin until release().
  void block(KeyT& key) {
    unlist(key);
    key.queue.blocked_ = true;
  }
  void release(KeyT& key) {
    key.queue.blocked_ = false;
    list(key);
  }

 private:
  struct Place {
    Urgency urgency;
    KeyT* key;
  };
  /// Of places that are out of date, what is let be beside as many again as are listed.
  static constexpr std::size_t kOutdated = 64;

  static bool isLater(const Place& a, const Place& b) { return b.urgency.soonerThan(a.urgency); }
  /// A key that has become more urgent has another place, and one that was listed again.
  static bool isCurrent(const Place& place) {
    return place.key->queue.listed_ && place.key->queue.urgency_ == place.urgency;
  }
  void push(KeyT& key) {
    if (heap_.size() > 2 * listed_ + kOutdated) {
      std::erase_if(heap_, [](const Place& place) { return !isCurrent(place); });
      std::make_heap(heap_.begin(), heap_.end(), isLater);
    }
    heap_.push_back({key.queue.urgency_, &key});
    std::push_heap(heap_.begin(), heap_.end(), isLater);
  }

  std::vector<Place> heap_;
  std::size_t listed_ = 0;
  std::size_t unfinished_ = 0;
  std::uint64_t sequence_ = 0;
};

/// Both orders of a store: of keys, and of what comes between fences. `Request`: what items are
/// made of once it is admitted.
template <class KeyT, class Request>
class Queue : public KeyOrder<KeyT> {
 public:
  /// A request, a setting (only a body) or a fence (a ticket too).
  struct Entry {
    bool isFence() const { return ticket != nullptr; }
    /// Runs the body; what that threw.
    std::exception_ptr run() const {
      try {
        if (body) body();
      } catch (...) {
        return std::current_exception();
      }
      return nullptr;
    }

    Request request;
    std::function<void()> body;
    std::shared_ptr<Ticket> ticket;
  };

  /// A fence waits or is under way: what comes now is held.
  bool holds() const { return entries_.holds(); }
  void hold(Entry entry) { entries_.hold(std::move(entry)); }
  /// Holds the entry, or carries it out: `admit` gets a request.
  template <class Admit>
  void add(Entry entry, const Admit& admit) {
    entries_.add(std::move(entry), carryingOut(admit));
  }
  /// Whether a fence may begin: everything before it has ended.
  bool fenceReady() const { return entries_.fenceWaits() && this->unfinished() == 0; }
  /// Under way, and its reference good, until endFence().
  Entry& beginFence() { return entries_.beginFence(); }
  template <class Admit>
  void endFence(const Admit& admit) {
    entries_.endFence(carryingOut(admit));
  }

 private:
  template <class Admit>
  static auto carryingOut(const Admit& admit) {
    return [&admit](Entry&& entry) {
      if (entry.body) {
        entry.body();
      } else {
        admit(std::move(entry.request));
      }
    };
  }

  OrderedQueue<Entry> entries_;
};

}  // namespace gradlink
