#include "shm/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/memory/free_memory.h"
#include "core/memory/huge_pages.h"

namespace gradlink::shm {
namespace {

/// The first page of a region. Freeing punches it out of the file, which clears `live` for all.
struct RegionHeader {
  std::atomic<std::uint64_t> live;
  std::uint64_t bytes;
};

RegionHeader& headerOf(std::byte* base) { return *reinterpret_cast<RegionHeader*>(base); }

/// What all ranks together may take between two checks of the free memory.
constexpr std::size_t kSlices = 64 << 20;
constexpr std::size_t kSmallestSlice = 1 << 20;

std::size_t wholePages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Error noMemory(std::size_t bytes) {
  return harmless(ErrorCode::outOfMemory, "allocShared",
                  "no memory for " + std::to_string(bytes) + " bytes");
}

/// Allocates the pages of a part of a file and extends it if needed. Returns 0 or errno.
int fallocateWhole(int file, std::uint64_t at, std::size_t bytes) {
  while (fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

SharedRegions::~SharedRegions() {
  for (auto& [address, mapping] : own_) {
    if (session_.betweenProcesses()) dropPages(mapping.region, mapping.bytes);
    munmap(mapping.base, mapping.bytes);
  }
  for (auto& [region, mapping] : mappings_) munmap(mapping.base, mapping.bytes);
}

void* SharedRegions::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw noMemory(bytes);
  const std::size_t total = kPage + wholePages(bytes);
  if (!session_.betweenProcesses()) return allocateOnHeap(total);
  requireMemory("allocShared", total);
  const std::uint64_t region = takePlace(total);
  // Not ftruncate: it would race with another rank's.
  if (fallocateWhole(session_.file(), region + total - 1, 1) != 0) throw noMemory(bytes);
  void* base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, session_.file(),
                    static_cast<off_t>(region));
  if (base == MAP_FAILED) {
    dropPages(region, total);
    throw noMemory(bytes);
  }
  adviseHugePages(base, total);
  try {
    takePages(region, base, total);
  } catch (const Error&) {
    munmap(base, total);
    dropPages(region, total);
    throw;
  }
  auto* start = static_cast<std::byte*>(base);
  headerOf(start).bytes = total;
  headerOf(start).live.store(1, std::memory_order_release);
  std::lock_guard lock(mutex_);
  own_[start + kPage] = {start, total, region};
  return start + kPage;
}

// Huge pages must be aligned in the file; the skipped part has no memory.
std::uint64_t SharedRegions::takePlace(std::size_t bytes) {
  std::atomic<std::uint64_t>& end = session_.segment().header().fileEnd;
  if (bytes < kHugePageBytes) return end.fetch_add(bytes);
  const std::uint64_t place = end.fetch_add(bytes + kHugePageBytes - kPage);
  return (place + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

// A memfd has no limit but the machine's, and an allocation that takes too much makes the kernel
// kill processes. So pages are allocated in slices after a check of the free memory each. Ranks
// that do so at once miss each other's slices, whose sum stays within the reserve. No page is left
// for the first access: a full /dev/shm would then be a SIGBUS.
void SharedRegions::takePages(std::uint64_t region, void* base, std::size_t bytes) {
  const std::size_t slice =
      std::max(kSmallestSlice, kSlices / static_cast<std::size_t>(session_.size()));
  for (std::size_t taken = 0; taken < bytes;) {
    const std::size_t some = std::min(slice, bytes - taken);
    requireMemory("allocShared", some, bytes);
    int failed = touchPages(static_cast<std::byte*>(base) + taken, some);
    if (failed == EINVAL) failed = fallocateWhole(session_.file(), region + taken, some);
    if (failed != 0) throw noMemory(bytes);
    taken += some;
  }
}

void SharedRegions::dropPages(std::uint64_t region, std::size_t bytes) {
  if (bytes == 0) return;
  fallocate(session_.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(region),
            static_cast<off_t>(bytes));
}

void* SharedRegions::allocateOnHeap(std::size_t total) {
  requireMemory("allocShared", total);
  void* base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw noMemory(total - kPage);
  // Fewer page faults and TLB misses.
  madvise(base, total, MADV_HUGEPAGE);
  auto* start = static_cast<std::byte*>(base);
  std::lock_guard lock(mutex_);
  own_[start + kPage] = {start, total, BufferRef::kPointer};
  return start + kPage;
}

void SharedRegions::release(void* memory) {
  Mapping mapping;
  {
    std::lock_guard lock(mutex_);
    auto found = own_.find(static_cast<std::byte*>(memory));
    if (found == own_.end()) return;
    mapping = found->second;
    own_.erase(found);
  }
  if (session_.betweenProcesses()) {
    headerOf(mapping.base).live.store(0, std::memory_order_release);
    dropPages(mapping.region, mapping.bytes);
  }
  munmap(mapping.base, mapping.bytes);
}

std::vector<DeferredUnmap> SharedRegions::abandon() {
  std::vector<DeferredUnmap> unmaps;
  std::lock_guard lock(mutex_);
  for (auto& [address, mapping] : own_) {
    if (session_.betweenProcesses()) {
      munmap(mapping.base, mapping.bytes);
    } else {
      unmaps.push_back({mapping.base, mapping.bytes});
    }
  }
  own_.clear();
  return unmaps;
}

bool SharedRegions::owns(const void* memory, std::size_t bytes) {
  const auto* start = static_cast<const std::byte*>(memory);
  std::lock_guard lock(mutex_);
  auto after = own_.upper_bound(start);
  if (after == own_.begin()) return false;
  const Mapping& mapping = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(start - mapping.base);
  return offset < mapping.bytes && bytes <= mapping.bytes - offset;
}

BufferRef SharedRegions::refer(const void* buffer, std::size_t bytes) {
  if (!session_.betweenProcesses() || buffer == nullptr) {
    return {BufferRef::kPointer, reinterpret_cast<std::uintptr_t>(buffer)};
  }
  const auto* start = static_cast<const std::byte*>(buffer);
  std::lock_guard lock(mutex_);
  auto after = own_.upper_bound(start);
  if (after == own_.begin()) return {};
  const Mapping& mapping = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(start - mapping.base);
  if (offset >= mapping.bytes || bytes > mapping.bytes - offset) return {};
  return {mapping.region, offset};
}

std::byte* SharedRegions::resolve(const BufferRef& ref) {
  if (ref.region == BufferRef::kPointer) return reinterpret_cast<std::byte*>(ref.at);
  auto known = mappings_.find(ref.region);
  if (known != mappings_.end()) return known->second.base + ref.at;
  dropFreed();
  return mapPeers(ref.region) + ref.at;
}

void SharedRegions::forget(const BufferRef& ref) {
  const auto known = mappings_.find(ref.region);
  if (known == mappings_.end()) return;
  munmap(known->second.base, known->second.bytes);
  mappings_.erase(known);
}

std::byte* SharedRegions::mapPeers(std::uint64_t region) {
  const int file = session_.file();
  auto map = [&](std::size_t bytes) {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file,
                      static_cast<off_t>(region));
    if (base == MAP_FAILED) throw systemError("cannot map a peer's shared array", errno);
    return static_cast<std::byte*>(base);
  };
  std::byte* first = map(kPage);
  const std::size_t bytes = headerOf(first).bytes;
  const bool live = headerOf(first).live.load(std::memory_order_acquire) == 1;
  munmap(first, kPage);
  if (!live) throw Error(ErrorCode::mismatch, "a peer freed its shared array while it was in use");
  std::byte* base = map(bytes);
  mappings_[region] = {base, bytes, region};
  return base;
}

void SharedRegions::dropFreed() {
  for (auto it = mappings_.begin(); it != mappings_.end();) {
    if (headerOf(it->second.base).live.load(std::memory_order_acquire) == 1) {
      ++it;
      continue;
    }
    munmap(it->second.base, it->second.bytes);
    it = mappings_.erase(it);
  }
}

}  // namespace gradlink::shm
