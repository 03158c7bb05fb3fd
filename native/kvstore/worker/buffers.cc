#include "kvstore/worker/buffers.h"

#include <algorithm>
#include <bit>

#include "kvstore/protocol/protocol.h"

namespace gradlink::dist {
namespace {

// Every process that reads an allocation of the wire maps it: few large ones are better.
constexpr std::size_t kFewestSlabBytes = 64 << 10;
constexpr std::size_t kMostSlabBytes = 16 << 20;

}  // namespace

WireBuffer* WireBuffers::take(std::size_t bytes, bool staged) {
  static_assert(kSmallest << (kClasses - 1) == kPieceBytes);
  WireBuffer* buffer;
  if (bytes > kPieceBytes) {
    auto own = std::make_unique<WireBuffer>(
        WireBuffer{wire_.allocate(bytes), bytes, WireBuffer::kOwn, staged});
    buffer = own.release();
  } else {
    const std::size_t units = (std::max(bytes, kSmallest) + kSmallest - 1) / kSmallest;
    const auto sizeClass = static_cast<std::size_t>(std::bit_width(units - 1));
    if (free_[sizeClass].empty()) grow(sizeClass);
    buffer = free_[sizeClass].back();
    free_[sizeClass].pop_back();
    buffer->staged = staged;
  }
  if (staged) stagedBytes_ += buffer->bytes;
  return buffer;
}

WireBuffer* WireBuffers::lend(const void* memory, std::size_t bytes, std::uint64_t lender) {
  if (freeLent_.empty()) {
    buffers_.push_back(std::make_unique<WireBuffer>());
    freeLent_.push_back(buffers_.back().get());
  }
  WireBuffer* const buffer = freeLent_.back();
  freeLent_.pop_back();
  *buffer = {const_cast<void*>(memory), bytes, 0, true, lender};
  stagedBytes_ += bytes;
  return buffer;
}

void WireBuffers::give(WireBuffer* buffer) {
  if (buffer->staged) stagedBytes_ -= buffer->bytes;
  if (buffer->lender != 0) return freeLent_.push_back(buffer);
  if (buffer->sizeClass == WireBuffer::kOwn) {
    const std::unique_ptr<WireBuffer> own(buffer);
    wire_.deallocate(own->memory);
    return;
  }
  free_[buffer->sizeClass].push_back(buffer);
}

void WireBuffers::grow(std::size_t sizeClass) {
  const std::size_t bytes = kSmallest << sizeClass;
  // Doubles them, so growth is rare.
  const std::size_t slab = std::clamp(std::max(made_[sizeClass], std::size_t{4}) * bytes,
                                      kFewestSlabBytes, std::max(kMostSlabBytes, bytes));
  auto* const memory = static_cast<std::byte*>(wire_.allocate(slab));
  const std::size_t count = slab / bytes;
  free_[sizeClass].reserve(made_[sizeClass] + count);
  for (std::size_t i = count; i-- > 0;) {
    buffers_.push_back(
        std::make_unique<WireBuffer>(WireBuffer{memory + i * bytes, bytes, sizeClass, false}));
    free_[sizeClass].push_back(buffers_.back().get());
  }
  made_[sizeClass] += count;
}

}  // namespace gradlink::dist
