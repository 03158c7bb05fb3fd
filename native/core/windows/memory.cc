#include "core/windows/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/windows/arithmetic.h"

namespace gradlink {
namespace {

constexpr std::size_t kLine = 64;

std::size_t lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::byte* allocate(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kLine, std::max(bytes, kLine)));
  if (memory != nullptr) return memory;
  throw harmless(ErrorCode::outOfMemory, "createWindow",
                 "no memory for " + std::to_string(bytes) + " bytes of buffers");
}

}  // namespace

WindowMemory::WindowMemory(const WindowSpec& spec, int size)
    : count_(spec.count),
      dtype_(spec.dtype),
      sources_(spec.sources),
      heads_(sources_.size() + 1),
      locks_(static_cast<std::size_t>(size)) {
  heads_[0].p = 1;
}

std::size_t WindowMemory::slotOf(int source) const {
  const auto at = std::find(sources_.begin(), sources_.end(), source);
  if (at == sources_.end()) {
    throw misuse("window", "rank " + std::to_string(source) + " is not a source of this rank");
  }
  return static_cast<std::size_t>(at - sources_.begin()) + 1;
}

void WindowMemory::written(Head& buffer, double weight, bool accumulate, bool withP, double p) {
  if (!accumulate) ++buffer.version;
  if (withP) buffer.p = (accumulate ? buffer.p : 0) + weight * p;
}

void WindowMemory::updated(double selfWeight, std::span<const Neighbor> sources,
                           std::size_t divisor, bool reset, bool ofArray) {
  double p = selfWeight * heads_[0].p;
  for (const Neighbor& from : sources) {
    Head& buffer = heads_[slotOf(from.rank)];
    p += from.weight * buffer.p;
    buffer.version = 0;
    if (reset) buffer.p = 0;
  }
  if (ofArray) heads_[0].p = p / static_cast<double>(divisor);
}

std::vector<std::uint64_t> WindowMemory::versions() {
  std::vector<std::uint64_t> counts;
  for (std::size_t slot = 1; slot < heads_.size(); ++slot) {
    const std::lock_guard lock(heads_[slot].mutex);
    counts.push_back(heads_[slot].version);
  }
  return counts;
}

double WindowMemory::p() {
  const std::lock_guard lock(heads_[0].mutex);
  return heads_[0].p;
}

int WindowMemory::tryLock(int other, int by) {
  int holder = 0;
  auto& lock = locks_[static_cast<std::size_t>(other)];
  const bool got = lock.compare_exchange_strong(holder, by + 1, std::memory_order_acquire);
  return got ? Window::kLocked : holder - 1;
}

void WindowMemory::unlock(int other) {
  locks_[static_cast<std::size_t>(other)].store(0, std::memory_order_release);
}

HostWindowMemory::HostWindowMemory(const WindowSpec& spec, int size, void* own)
    : WindowMemory(spec, size),
      own_(own),
      buffers_(allocate(spec.sources.size() * lines(bytes())), std::free) {
  if (bytes() == 0) return;
  for (std::size_t slot = 0; slot < arrays(); ++slot) {
    if (slot == 0 || !spec.zeroInit) {
      copyBytes(array(slot), spec.initial, bytes());
    } else {
      std::memset(array(slot), 0, bytes());
    }
  }
}

void* HostWindowMemory::array(std::size_t slot) const {
  return slot == 0 ? own_ : buffers_.get() + (slot - 1) * lines(bytes());
}

void HostWindowMemory::write(int source, const void* message, double weight, bool accumulate,
                             bool withP, double p) {
  const std::size_t slot = slotOf(source);
  Head& buffer = head(slot);
  const std::lock_guard lock(buffer.mutex);
  if (accumulate) {
    addScaled(array(slot), message, weight, count(), dtype());
  } else {
    scaledCopy(array(slot), message, weight, count(), dtype());
  }
  written(buffer, weight, accumulate, withP, p);
}

double HostWindowMemory::read(void* message) {
  const std::lock_guard lock(head(0).mutex);
  scaledCopy(message, own_, 1, count(), dtype());
  return head(0).p;
}

void HostWindowMemory::copyOut(void* message, const void* values) {
  scaledCopy(message, values, 1, count(), dtype());
}

void HostWindowMemory::scale(void* values, double weight, bool withP) {
  const std::lock_guard lock(head(0).mutex);
  scaledCopy(values, values, weight, count(), dtype());
  if (withP) head(0).p *= weight;
}

void HostWindowMemory::update(void* out, double selfWeight, std::span<const Neighbor> sources,
                              std::size_t divisor, bool reset, bool withP) {
  std::vector<const void*> from = {own_};
  std::vector<double> weights = {selfWeight};
  std::vector<std::unique_lock<std::mutex>> held;
  // No other operation holds two of them.
  for (const Neighbor& source : sources) {
    const std::size_t slot = slotOf(source.rank);
    held.emplace_back(head(slot).mutex);
    from.push_back(array(slot));
    weights.push_back(source.weight);
  }
  held.emplace_back(head(0).mutex);
  combine(out == nullptr ? own_ : out, from, weights, divisor, count(), dtype());
  for (const Neighbor& source : sources) {
    if (reset && bytes() > 0) std::memset(array(slotOf(source.rank)), 0, bytes());
  }
  updated(selfWeight, sources, divisor, reset, withP && out == nullptr);
}

}  // namespace gradlink
