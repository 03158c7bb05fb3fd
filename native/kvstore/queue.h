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
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

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

/// What stands between operations: it begins when all before it is done, and all behind it waits
/// until it is over. Engines that do more for one have fences of their own.
struct Fence {
  std::function<void()> body = nullptr;
  std::shared_ptr<Ticket> ticket = nullptr;
};

/// Runs the body of a fence, which may be null; what it threw.
inline std::exception_ptr outcomeOf(const std::function<void()>& body) {
  try {
    if (body) body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// The order of what comes: it is carried out in its place, but for what stands behind a fence.
/// `Request`: what operations are before they are admitted.
template <class Request, class FenceT = Fence>
class FenceQueue {
 public:
  /// A request, unless it has a setting, which is carried out in its place, or a fence.
  struct Entry {
    Request request = {};
    std::function<void()> setting = nullptr;
    std::unique_ptr<FenceT> fence = nullptr;
  };
  static Entry settingOf(std::function<void()> body) { return {{}, std::move(body), nullptr}; }
  static Entry fenceOf(FenceT fence) {
    return {{}, nullptr, std::make_unique<FenceT>(std::move(fence))};
  }

  /// A fence waits or is under way: what comes now is held.
  bool holds() const { return !held_.empty(); }
  /// Takes a fence, or what comes while one is held.
  void hold(Entry&& entry) { held_.push_back(std::move(entry)); }
  /// Holds the entry, or carries it out: `admit` gets a request.
  template <class Admit>
  void add(Entry&& entry, const Admit& admit) {
    if (holds() || entry.fence) {
      hold(std::move(entry));
    } else {
      carryOut(std::move(entry), admit);
    }
  }

  /// A fence waits until everything before it is done.
  bool fenceWaits() const { return holds() && !running_; }
  /// From here on that fence is under way; the reference is good until endFence().
  FenceT& beginFence() {
    running_ = true;
    return fence();
  }
  /// The fence under way.
  FenceT& fence() { return *held_.front().fence; }
  /// It is over: what it held back is carried out, up to the next fence.
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

  /// All that is held, a fence under way first. Nothing is held afterwards.
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

  std::deque<Entry> held_;  // the first is a fence
  bool running_ = false;
};

/// Both orders of a store: of keys, and of what comes between fences.
template <class KeyT, class Request, class FenceT = Fence>
class Queue : public KeyOrder<KeyT>, public FenceQueue<Request, FenceT> {
 public:
  /// Whether a fence may begin.
  bool fenceReady() const { return this->fenceWaits() && this->unfinished() == 0; }
};

}  // namespace gradlink
