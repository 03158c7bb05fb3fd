#include "kvstore/base/aligned_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/memory/huge_pages.h"
#include "core/thread_pool.h"

namespace gradlink {

namespace {
constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;
// Of one part handed to a thread: whole huge pages, enough work to be worth waking it.
constexpr std::size_t kTouchBytes = 2 * kHugePageBytes;
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
  // aligned_alloc wants whole multiples of the alignment.
  void* memory = nullptr;
  if (rounded < bytes || posix_memalign(&memory, alignment, rounded) != 0) {
    throw Error(ErrorCode::outOfMemory,
                "cannot allocate " + std::to_string(bytes) +
                    " bytes for the store: use fewer or smaller arrays, or a "
                    "machine with more memory");
  }
  memory_.reset(memory);
  adviseHugePages(memory, rounded);
  // The first touch is where the system makes the pages: of many, by all threads.
  const std::size_t parts = (bytes + kTouchBytes - 1) / kTouchBytes;
  ThreadPool::shared().parallel(parts, [&](std::size_t part) {
    const std::size_t first = part * kTouchBytes;
    std::memset(static_cast<std::byte*>(memory) + first, 0, std::min(kTouchBytes, bytes - first));
  });
}

void AlignedBuffer::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace gradlink
