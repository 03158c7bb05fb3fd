// Memory of allocShared. For processes, regions are appended to the segment's file and mapped by
// peers at the first use. Offsets are never reused: a stale reference cannot mean newer memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "shm/deferred_unmaps.h"
#include "shm/session.h"

namespace gradlink::shm {

class SharedRegions {
 public:
  explicit SharedRegions(Session& session) : session_(session) {}
  ~SharedRegions();
  SharedRegions(const SharedRegions&) = delete;
  SharedRegions& operator=(const SharedRegions&) = delete;

  /// Zeroed, 64-byte aligned. Thread-safe, as release().
  void* allocate(std::size_t bytes);
  void release(void* memory);

  /// Gives up all allocations without unmapping them: peers may be reading. Processes' file keeps
  /// them until its last user goes; threads' are returned, to be unmapped later.
  std::vector<DeferredUnmap> abandon();

  /// Whether all of these bytes are in one allocation. Thread-safe.
  bool owns(const void* memory, std::size_t bytes);

  /// A reference for peers to `bytes` bytes at `buffer`, which may be null.
  BufferRef refer(const void* buffer, std::size_t bytes);
  /// The address of a rank's reference. Only on the thread that calls collectives.
  std::byte* resolve(const BufferRef& ref);
  /// Unmaps what a rank referred to, once unused here. On the same thread.
  void forget(const BufferRef& ref);

 private:
  struct Mapping {
    std::byte* base;
    std::size_t bytes;
    std::uint64_t region;
  };
  void* allocateOnHeap(std::size_t bytes);
  std::uint64_t takePlace(std::size_t bytes);
  void takePages(std::uint64_t region, void* base, std::size_t bytes);
  void dropPages(std::uint64_t region, std::size_t bytes);
  std::byte* mapPeers(std::uint64_t region);
  void dropFreed();

  Session& session_;
  std::mutex mutex_;                           // guards own_
  std::map<const std::byte*, Mapping> own_;    // by address
  std::map<std::uint64_t, Mapping> mappings_;  // other ranks', by place in the file
};

}  // namespace gradlink::shm
