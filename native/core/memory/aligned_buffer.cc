#include "core/memory/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/memory/huge_pages.h"

namespace gradlink {

namespace {
constexpr std::size_t kCacheLine = 64;
// Larger blocks are mapped, so the system gets them back: the C library would keep up to 32 MiB.
constexpr std::size_t kFewestMapped = 128 << 10;

std::size_t roundUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Null if there is no memory. `bytes`: whole pages.
void* mapAligned(std::size_t bytes, std::size_t alignment) {
  const std::size_t room = bytes + alignment;
  void* const memory =
      mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = roundUp(address, alignment) - address;
  if (before > 0) munmap(first, before);
  const std::size_t behind = room - before - bytes;
  if (behind > 0) munmap(first + before + bytes, behind);
  return first + before;
}
}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  const bool maps = bytes >= kFewestMapped;
  // The remainder uses small pages: a huge page would be up to half waste.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = roundUp(bytes, maps ? page : kCacheLine);
  void* memory = nullptr;
  if (rounded >= bytes && rounded <= SIZE_MAX / 2) {
    memory = maps ? mapAligned(rounded, bytes >= kHugePageBytes ? kHugePageBytes : page)
                  : std::aligned_alloc(kCacheLine, rounded);
  }
  if (memory == nullptr) {
    throw Error(ErrorCode::outOfMemory,
                "cannot allocate " + std::to_string(bytes) +
                    " bytes: use fewer or smaller arrays, or a machine with more memory");
  }
  memory_ = {memory, Free{maps ? rounded : 0}};
  adviseHugePages(memory, rounded);
  // Mapped memory is zero. The first touch makes the pages, so all threads do it.
  if (!maps || touchPages(memory, rounded) != 0) std::memset(memory, 0, bytes);
}

void AlignedBuffer::Free::operator()(void* memory) const {
  if (mapped > 0) {
    munmap(memory, mapped);
  } else {
    std::free(memory);
  }
}

}  // namespace gradlink
