#include "core/memory/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace gradlink {

void adviseHugePages(void* data, std::size_t bytes) {
  if (bytes < kHugePageBytes) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (at + page - 1) / page * page;
  const std::uintptr_t end = (at + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace gradlink
