// Objects that a library gives out by handle.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace gradlink::fake {

/// A handle that was destroyed is unknown, where the driver may do anything.
template <class T, class Handle>
class Handles {
 public:
  Handle add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* const address = object.get();
    objects_[address] = std::move(object);
    return reinterpret_cast<Handle>(address);
  }
  /// Null for an unknown handle.
  std::shared_ptr<T> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace gradlink::fake
