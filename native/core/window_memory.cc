#include "core/window_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/window_arithmetic.h"

namespace gradlink {
namespace {

constexpr std::size_t kLine = 64;

std::size_t lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::byte* allocate(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kLine, std::max(bytes, kLine)));
  if (memory != nullptr) return memory;
  throw Error(ErrorCode::outOfMemory,
              "createWindow: no memory for " + std::to_string(bytes) + " bytes of buffers")
      .withOp("createWindow")
      .stillUsable();
}

}  // namespace

WindowMemory::WindowMemory(const WindowSpec& spec, int size, void* own)
    : count_(spec.count),
      dtype_(spec.dtype),
      sources_(spec.sources),
      own_(own),
      buffers_(allocate(sources_.size() * lines(bytes())), std::free),
      arrays_(sources_.size() + 1),
      locks_(static_cast<std::size_t>(size)) {
  for (std::size_t slot = 0; slot < arrays_.size(); ++slot) {
    Array& array = arrays_[slot];
    array.data =
        slot == 0 ? static_cast<std::byte*>(own) : buffers_.get() + (slot - 1) * lines(bytes());
    array.p = slot == 0 ? 1 : 0;
    if (bytes() == 0) continue;
    if (slot == 0 || !spec.zeroInit) {
      std::memcpy(array.data, spec.initial, bytes());
    } else {
      std::memset(array.data, 0, bytes());
    }
  }
}

WindowMemory::Array& WindowMemory::of(int source) {
  const auto at = std::find(sources_.begin(), sources_.end(), source);
  if (at == sources_.end()) {
    throw Error(ErrorCode::invalidArgument,
                "window: rank " + std::to_string(source) + " is no source of this rank")
        .withOp("window")
        .stillUsable();
  }
  return arrays_[static_cast<std::size_t>(at - sources_.begin()) + 1];
}

void WindowMemory::write(int source, const void* values, double weight, bool accumulate, bool withP,
                         double p) {
  Array& buffer = of(source);
  const std::lock_guard lock(buffer.mutex);
  if (accumulate) {
    addScaled(buffer.data, values, weight, count_, dtype_);
  } else {
    scaledCopy(buffer.data, values, weight, count_, dtype_);
    ++buffer.version;
  }
  if (withP) buffer.p = (accumulate ? buffer.p : 0) + weight * p;
}

double WindowMemory::read(void* to) {
  const std::lock_guard lock(arrays_[0].mutex);
  scaledCopy(to, own_, 1, count_, dtype_);
  return arrays_[0].p;
}

void WindowMemory::scale(void* values, double weight, bool withP) {
  const std::lock_guard lock(arrays_[0].mutex);
  scaledCopy(values, values, weight, count_, dtype_);
  if (withP) arrays_[0].p *= weight;
}

void WindowMemory::update(void* out, double selfWeight, std::span<const Neighbor> sources,
                          std::size_t divisor, bool reset, bool withP) {
  std::vector<const void*> arrays = {own_};
  std::vector<double> weights = {selfWeight};
  std::vector<std::unique_lock<std::mutex>> held;
  // Nobody else holds two of them.
  for (const Neighbor& from : sources) {
    Array& buffer = of(from.rank);
    held.emplace_back(buffer.mutex);
    arrays.push_back(buffer.data);
    weights.push_back(from.weight);
  }
  held.emplace_back(arrays_[0].mutex);
  combine(out == nullptr ? own_ : out, arrays, weights, divisor, count_, dtype_);
  double p = selfWeight * arrays_[0].p;
  for (const Neighbor& from : sources) {
    Array& buffer = of(from.rank);
    p += from.weight * buffer.p;
    buffer.version = 0;
    if (!reset) continue;
    if (bytes() > 0) std::memset(buffer.data, 0, bytes());
    buffer.p = 0;
  }
  if (withP && out == nullptr) arrays_[0].p = p / static_cast<double>(divisor);
}

std::vector<std::uint64_t> WindowMemory::versions() {
  std::vector<std::uint64_t> counts;
  for (std::size_t slot = 1; slot < arrays_.size(); ++slot) {
    const std::lock_guard lock(arrays_[slot].mutex);
    counts.push_back(arrays_[slot].version);
  }
  return counts;
}

double WindowMemory::p() {
  const std::lock_guard lock(arrays_[0].mutex);
  return arrays_[0].p;
}

bool WindowMemory::tryLock(int other) {
  return !locks_[static_cast<std::size_t>(other)].exchange(true, std::memory_order_acquire);
}

void WindowMemory::unlock(int other) {
  locks_[static_cast<std::size_t>(other)].store(false, std::memory_order_release);
}

}  // namespace gradlink
