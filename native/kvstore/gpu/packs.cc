#include "kvstore/gpu/packs.h"

#include <algorithm>
#include <utility>

namespace gradlink {
namespace {

constexpr std::size_t kPackStart = 256;
/// Registering takes milliseconds and a pause: not for every key that is added.
constexpr std::size_t kLeastPacks = std::size_t{8} << 20;

}  // namespace

std::vector<std::byte*> GpuPacks::take(std::size_t bytes) {
  bytes = (bytes + kPackStart - 1) / kPackStart * kPackStart;
  const std::size_t at = std::exchange(used_, used_ + bytes);
  most_ = std::max(most_, used_);
  std::vector<std::byte*> buffers;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    buffers.push_back(used_ <= bytes_ ? static_cast<std::byte*>(memory_[place]->data()) + at
                                      : static_cast<std::byte*>(places_[place].arena.take(bytes)));
  }
  return buffers;
}

std::size_t GpuPacks::lacking() const {
  return wanting_ && most_ > bytes_ ? std::max(most_, kLeastPacks) : 0;
}

void GpuPacks::replace(Memory memory, std::size_t bytes) {
  memory_ = std::move(memory);
  bytes_ = bytes;
}

void GpuPacks::giveUp() {
  wanting_ = false;
  replace({}, 0);
}

}  // namespace gradlink
