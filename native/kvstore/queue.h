// The order of operations in any store: first in, first out within a key; between keys by urgency,
// then by waiting time; fences and settings in between.
//
// Nothing here is locked: engines report what has come and ended, and take what is next, with their
// own threads and locks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kvstore/store.h"

namespace gradlink {

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

/// The pending items of one key. Keeps its memory, unlike a deque.
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
  /// Pulls behind a push (or a pull) are merged with it.
  bool pullIsNext() const { return !empty() && kindOf(items_[first_]) == OperationKind::pull; }

  /// The highest of all items: an urgent item speeds up those that it has to wait for.
  std::int32_t priority() const { return priority_; }
  /// Valid for a listed key.
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
  /// Earlier entries are empty.
  std::size_t first_ = 0;
  /// The highest priority, and the number of items that have it.
  std::int32_t priority_ = 0;
  std::size_t urgent_ = 0;

  // ---- of the order of keys
  Urgency urgency_;
  bool listed_ = false;
  bool blocked_ = false;
};

/// Orders the keys. A key has a KeyQueue `queue` and is listed while it has something to begin.
template <class KeyT>
class KeyOrder {
 public:
  /// Items that joined and have not ended.
  std::size_t unfinished() const { return unfinished_; }
  bool empty() const { return listed_ == 0; }

  /// Queues an admitted item behind earlier ones.
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
  void ended(std::size_t items) { unfinished_ -= items; }

  /// Null if nothing may begin. The key stays listed.
  KeyT* soonest() {
    while (!heap_.empty() && !isCurrent(heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), isLater);
      heap_.pop_back();
    }
    return heap_.empty() ? nullptr : heap_.front().key;
  }
  /// Lists a key unless it is listed or has nothing to begin.
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
  /// Nothing of the key may begin until release().
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
  /// Outdated places are removed once there are this many more than listed keys.
  static constexpr std::size_t kOutdated = 64;

  static bool isLater(const Place& a, const Place& b) { return b.urgency.soonerThan(a.urgency); }
  /// Places become outdated when a key is listed again or becomes more urgent.
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

/// A fence begins when everything before it is done; everything behind it waits for its end.
struct Fence {
  std::function<void()> body = nullptr;
  std::shared_ptr<Ticket> ticket = nullptr;
};

/// Runs a fence's body, which may be null; returns its exception.
inline std::exception_ptr outcomeOf(const std::function<void()>& body) {
  try {
    if (body) body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// The order of incoming entries: each is carried out at once, unless a fence is pending.
/// `Request`: an operation before admission.
template <class Request, class FenceT = Fence>
class FenceQueue {
 public:
  /// A setting if set, else a fence if set, else a request.
  struct Entry {
    Request request = {};
    std::function<void()> setting = nullptr;
    std::unique_ptr<FenceT> fence = nullptr;
  };
  static Entry settingOf(std::function<void()> body) { return {{}, std::move(body), nullptr}; }
  static Entry fenceOf(FenceT fence) {
    return {{}, nullptr, std::make_unique<FenceT>(std::move(fence))};
  }

  bool holds() const { return !held_.empty(); }
  void hold(Entry&& entry) { held_.push_back(std::move(entry)); }
  /// Holds the entry behind a fence, or carries it out: `admit` gets a request.
  template <class Admit>
  void add(Entry&& entry, const Admit& admit) {
    if (holds() || entry.fence) {
      hold(std::move(entry));
    } else {
      carryOut(std::move(entry), admit);
    }
  }

  /// Whether a fence waits for everything before it.
  bool fenceWaits() const { return holds() && !running_; }
  /// Starts the fence; the reference is valid until endFence().
  FenceT& beginFence() {
    running_ = true;
    return fence();
  }
  FenceT& fence() { return *held_.front().fence; }
  /// Carries out what the fence held back, up to the next fence.
  template <class Admit>
  void endFence(const Admit& admit) {
    running_ = false;
    held_.pop_front();
    while (holds() && !held_.front().fence) {
      Entry entry = std::move(held_.front());
      held_.pop_front();
      carryOut(std::move(entry), admit);
    }
  }

  /// Removes and returns everything that is held, a running fence first.
  std::deque<Entry> takeAll() {
    running_ = false;
    return std::exchange(held_, {});
  }

 private:
  template <class Admit>
  static void carryOut(Entry&& entry, const Admit& admit) {
    if (entry.setting) {
      entry.setting();
    } else {
      admit(std::move(entry.request));
    }
  }

  std::deque<Entry> held_;
  bool running_ = false;
};

/// Both orders of a store: of keys, and of entries between fences.
template <class KeyT, class Request, class FenceT = Fence>
class Queue : public KeyOrder<KeyT>, public FenceQueue<Request, FenceT> {
 public:
  bool fenceReady() const { return this->fenceWaits() && this->unfinished() == 0; }
};

}  // namespace gradlink
