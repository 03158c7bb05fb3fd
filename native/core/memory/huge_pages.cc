#include "core/memory/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "core/thread_pool.h"

namespace gradlink {
namespace {

// The part of one thread: whole huge pages, long enough to be worth a wake-up.
constexpr std::size_t kTouchBytes = 2 * kHugePageBytes;

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // Linux 5.14
#endif

}  // namespace

void adviseHugePages(void* data, std::size_t bytes) {
  if (bytes < kHugePageBytes) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (at + page - 1) / page * page;
  const std::uintptr_t end = (at + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

int touchPages(void* data, std::size_t bytes) {
  std::atomic<int> failed{0};
  ThreadPool::shared().parallel((bytes + kTouchBytes - 1) / kTouchBytes, [&](std::size_t part) {
    auto* const first = static_cast<char*>(data) + part * kTouchBytes;
    const std::size_t some = std::min(kTouchBytes, bytes - part * kTouchBytes);
    int error = 0;
    do {
      error = madvise(first, some, kPopulate) == 0 ? 0 : errno;
    } while (error == EINTR || error == EAGAIN);
    if (error != 0) failed.store(error, std::memory_order_relaxed);
  });
  return failed.load(std::memory_order_relaxed);
}

}  // namespace gradlink
