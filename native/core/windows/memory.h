// One rank's side of a window whose peers cannot reach into its memory: its array and its sources'
// buffers, which a thread changes for them. Each operation on one array is whole.
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

/// Safe from any thread. What the rank's own calls bring (`values`, `out`) is memory of the kind of
/// the array; what messages bring is the host's.
class WindowMemory {
 public:
  virtual ~WindowMemory() = default;
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  std::size_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return count_ * sizeOf(dtype_); }
  /// The rank's array.
  virtual void* data() const = 0;

  /// The source's buffer becomes weight * message, and its version counts up; accumulate: it grows
  /// by that. Its p likewise, by weight * `p`. Throws invalidArgument for who is no source.
  virtual void write(int source, const void* message, double weight, bool accumulate, bool withP,
                     double p) = 0;
  /// Copies the array, whole, into a message; returns p.
  virtual double read(void* message) = 0;
  /// Copies what is to be put into a message.
  virtual void copyOut(void* message, const void* values) = 0;
  /// values *= weight, p too: what is left of what was put. `values` may be the array.
  virtual void scale(void* values, double weight, bool withP) = 0;
  /// Window::update.
  virtual void update(void* out, double selfWeight, std::span<const Neighbor> sources,
                      std::size_t divisor, bool reset, bool withP) = 0;
  std::vector<std::uint64_t> versions();
  double p();

  /// The program's locks of this rank and each other, for the rank `by`; as Window::tryLock.
  int tryLock(int other, int by);
  void unlock(int other);

 protected:
  /// What is known of an array beside its elements.
  struct Head {
    double p = 0;
    std::uint64_t version = 0;
    std::mutex mutex;
  };

  /// `size`: ranks.
  WindowMemory(const WindowSpec& spec, int size);

  /// The place of a source's buffer among the arrays; throws invalidArgument.
  std::size_t slotOf(int source) const;
  std::size_t arrays() const { return heads_.size(); }
  /// The rank's own, then one a source.
  Head& head(std::size_t slot) { return heads_[slot]; }
  /// What write() does to p and the version of a buffer whose mutex is held.
  static void written(Head& buffer, double weight, bool accumulate, bool withP, double p);
  /// What update() does to p and the versions; all their mutexes are held.
  void updated(double selfWeight, std::span<const Neighbor> sources, std::size_t divisor,
               bool reset, bool ofArray);

 private:
  const std::size_t count_;
  const DType dtype_;
  const std::vector<int> sources_;
  std::vector<Head> heads_;
  /// 0, or 1 + the rank that has the lock.
  std::vector<std::atomic<int>> locks_;
};

/// In the memory of the host.
class HostWindowMemory final : public WindowMemory {
 public:
  /// `own` has room for the array, becomes the initial values and outlives this.
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
