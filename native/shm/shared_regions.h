// Memory of allocShared: for processes, stretches appended to the segment's file, which peers map
// when they first meet them in a call. A stretch of the file is never used twice, so a stale
// reference cannot mean newer memory.
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

  /// Zeroed, 64-byte aligned. From any thread, as release().
  void* allocate(std::size_t bytes);
  void release(void* memory);

  /// Gives up what is still allocated without ending it: peers may be reading it. Of processes the
  /// file keeps it until its last user goes; between threads the caller gets it, to be unmapped
  /// when nobody reads it any more.
  std::vector<DeferredUnmap> abandon();

  /// Whether all of these bytes are of one allocation. From any thread.
  bool owns(const void* memory, std::size_t bytes);

  /// How a peer can reach `bytes` bytes at `buffer`; a null buffer needs no reaching.
  BufferRef refer(const void* buffer, std::size_t bytes);
  /// The address of what a rank referred to. Only on the thread that calls collectives.
  std::byte* resolve(const BufferRef& ref);
  /// Of what a rank referred to, when nothing here uses it any more: unmaps it. On the same thread.
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
  std::mutex mutex_;                           // over own_
  std::map<const std::byte*, Mapping> own_;    // by address
  std::map<std::uint64_t, Mapping> mappings_;  // other ranks', by place in the file
};

}  // namespace gradlink::shm
