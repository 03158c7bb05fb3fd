// Memory of a measurement: whole pages, so nothing else shares a cache line or page with it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/memory/huge_pages.h"

namespace gradlink::measure {

struct FreePages {
  void operator()(void* memory) const { std::free(memory); }
};
using PageBuffer = std::unique_ptr<void, FreePages>;

inline constexpr std::size_t kPage = 4096;

inline Error tooLarge(std::size_t bytes) {
  return Error(ErrorCode::outOfMemory, "cannot allocate " + std::to_string(bytes) +
                                           " bytes for a measurement: choose a smaller size");
}

/// Untouched memory: the thread that first writes a page decides its NUMA node. Null for 0 bytes.
/// `huge`: on huge pages if the system permits.
inline PageBuffer allocatePages(std::size_t bytes, bool huge = false) {
  if (bytes == 0) return nullptr;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  const std::size_t alignment = huge && bytes >= kHugePageBytes ? kHugePageBytes : kPage;
  // aligned_alloc needs a multiple of the alignment.
  void* memory = nullptr;
  if (rounded < bytes || posix_memalign(&memory, alignment, rounded) != 0) {
    throw tooLarge(bytes);
  }
  if (huge) adviseHugePages(memory, rounded);
  return PageBuffer(memory);
}

}  // namespace gradlink::measure
