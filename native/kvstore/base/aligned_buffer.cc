#include "kvstore/base/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/memory/huge_pages.h"

namespace gradlink {

namespace {
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;
}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  const bool huge = bytes >= kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : kCacheLine;
  // The last huge page stays one of small ones: whole ones would be up to half waste.
  const std::size_t unit = huge ? kPage : kCacheLine;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::outOfMemory,
                "cannot allocate " + std::to_string(bytes) +
                    " bytes for the store: use fewer or smaller arrays, or a "
                    "machine with more memory");
  }
  memory_.reset(memory);
  adviseHugePages(memory, rounded);
  std::memset(memory, 0, bytes);
}

void AlignedBuffer::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace gradlink
