// The order that every store keeps: entries are carried out as they come, but a fence waits for all
// before it, and what comes after waits for the fence.
//
// Each engine has a thread, a lock and a way of being woken of its own; this is what they share. An
// engine decides when everything before a fence is done, runs it, and says when it is over.
#pragma once

#include <deque>
#include <utility>

namespace gradlink {

/// Not locked: guarded as the engine guards what the entries change. Entry::isFence() tells which
/// they are.
template <class Entry>
class OrderedQueue {
 public:
  /// A fence waits or is under way: what comes now is held.
  bool holds() const { return !held_.empty(); }
  /// Takes a fence, or what comes while one is held.
  void hold(Entry&& entry) { held_.push_back(std::move(entry)); }
  /// Holds the entry, or hands it to `carryOut` where nothing is before it.
  template <class CarryOut>
  void add(Entry&& entry, CarryOut&& carryOut) {
    if (holds() || entry.isFence()) {
      hold(std::move(entry));
    } else {
      carryOut(std::move(entry));
    }
  }

  /// A fence waits until everything before it is done.
  bool fenceWaits() const { return holds() && !running_; }
  /// From here on that fence is under way; the reference is good until endFence().
  Entry& beginFence() {
    running_ = true;
    return held_.front();
  }
  /// The fence under way.
  Entry& fence() { return held_.front(); }
  /// It is over: what it held back is carried out, up to the next fence.
  template <class CarryOut>
  void endFence(CarryOut&& carryOut) {
    running_ = false;
    held_.pop_front();
    while (holds() && !held_.front().isFence()) {
      Entry entry = std::move(held_.front());
      held_.pop_front();
      carryOut(std::move(entry));
    }
  }

  /// All that is held, a fence under way first. Nothing is held afterwards.
  std::deque<Entry> takeAll() {
    running_ = false;
    return std::exchange(held_, {});
  }

 private:
  std::deque<Entry> held_;  // the first is a fence
  bool running_ = false;
};

}  // namespace gradlink
