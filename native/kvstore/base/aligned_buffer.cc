#include "kvstore/base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"

namespace gradlink {

namespace {
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Below this, rounding up to whole huge pages would waste more than the saved page faults are
// worth.
constexpr std::size_t kHugeFrom = 4 * kHugePage;
}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  const std::size_t alignment = bytes >= kHugeFrom ? kHugePage : kCacheLine;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::outOfMemory,
                "cannot allocate " + std::to_string(bytes) +
                    " bytes for the store: use fewer or smaller arrays, or a "
                    "machine with more memory");
  }
  memory_.reset(memory);
  if (alignment == kHugePage) {
    madvise(memory, rounded, MADV_HUGEPAGE);  // advice only: a refusal changes nothing but speed
  }
  std::memset(memory, 0, bytes);
}

void AlignedBuffer::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace gradlink
