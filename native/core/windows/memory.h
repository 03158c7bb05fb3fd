// One rank's side of a window whose peers cannot access its memory: its array and its sources'
// buffers, which a thread changes on their behalf. Each operation on one array is atomic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/window.h"

namespace gradlink {

/// Thread-safe. Own calls pass memory of the array's kind (`values`, `out`), messages host memory.
class WindowMemory {
 public:
  virtual ~WindowMemory() = default;
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  std::size_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return count_ * sizeOf(dtype_); }
  virtual void* data() const = 0;

  /// Sets the source's buffer to weight * message (accumulate: adds it) and increments its version;
  /// likewise its p with weight * `p`. Throws invalidArgument for a rank that is not a source.
  virtual void write(int source, const void* message, double weight, bool accumulate, bool withP,
                     double p) = 0;
  /// Copies the array atomically into a message; returns p.
  virtual double read(void* message) = 0;
  virtual void copyOut(void* message, const void* values) = 0;
  /// values *= weight, p too; `values` may be the array.
  virtual void scale(void* values, double weight, bool withP) = 0;
  virtual void update(void* out, double selfWeight, std::span<const Neighbor> sources,
                      std::size_t divisor, bool reset, bool withP) = 0;
  std::vector<std::uint64_t> versions();
  double p();

  /// The advisory locks of this rank and each other one, for the rank `by`; as Window::tryLock.
  int tryLock(int other, int by);
  void unlock(int other);

 protected:
  struct Head {
    double p = 0;
    std::uint64_t version = 0;
    std::mutex mutex;
  };

  WindowMemory(const WindowSpec& spec, int size);

  /// The index of a source's buffer among the arrays; throws invalidArgument.
  std::size_t slotOf(int source) const;
  std::size_t arrays() const { return heads_.size(); }
  /// The rank's own, then one for each source.
  Head& head(std::size_t slot) { return heads_[slot]; }
  /// Updates p and version for write(); the buffer's mutex is held.
  static void written(Head& buffer, double weight, bool accumulate, bool withP, double p);
  /// Updates p and versions for update(); all their mutexes are held.
  void updated(double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
               bool reset, bool ofArray);

 private:
  const std::size_t count_;
  const DType dtype_;
  const std::vector<int> sources_;
  std::vector<Head> heads_;
  /// 0, or 1 + the rank that holds the lock.
  std::vector<std::atomic<int>> locks_;
};

class HostWindowMemory final : public WindowMemory {
 public:
  /// `own` has room for the array, gets the initial values and outlives this object.
  HostWindowMemory(const WindowSpec& spec, int size, void* own);

  void* data() const override { return own_; }
  void write(int source, const void* message, double weight, bool accumulate, bool withP,
             double p) override;
  double read(void* message) override;
  void copyOut(void* message, const void* values) override;
  void scale(void* values, double weight, bool withP) override;
  void update(void* out, double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
              bool reset, bool withP) override;

 private:
  void* array(std::size_t slot) const;

  void* const own_;
  std::unique_ptr<std::byte, void (*)(void*)> buffers_;
};

}  // namespace gradlink
