// Memory of a measurement: whole pages, so that nothing else shares a cache line or page with it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/error.h"

namespace gradlink::measure {

struct FreePages {
  void operator()(void* memory) const { std::free(memory); }
};
using PageBuffer = std::unique_ptr<void, FreePages>;

/// Untouched memory: the first thread that writes a page decides where it lies. Null for 0 bytes.
inline PageBuffer allocatePages(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  PageBuffer buffer(rounded < bytes ? nullptr : std::aligned_alloc(kPage, rounded));
  if (!buffer) {
    throw Error(ErrorCode::outOfMemory, "cannot allocate " + std::to_string(bytes) +
                                            " bytes for a measurement: choose a smaller size");
  }
  return buffer;
}

}  // namespace gradlink::measure
