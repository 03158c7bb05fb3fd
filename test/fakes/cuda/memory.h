// Memory of the simulated GPUs and page-locked host memory: host memory in address ranges of their
// own, so that every address says whose it is, and one that was freed is not taken for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cuda/status.h"
#include "support/machine.h"

namespace gradlink::fake {

/// Where an address is: a GPU's ordinal, kHost for page-locked memory, kPageable for any other.
inline constexpr int kPageable = -2;

inline void* pointer(Address address) { return reinterpret_cast<void*>(address); }

class Memory {
 public:
  static Memory& get();

  /// Of GPU `place`, or page-locked for kHost. It begins with a pattern, so that who relies on
  /// zeros is found. kOutOfMemory where the GPU has no more.
  Status allocate(int place, std::size_t bytes, Address* address);
  /// kInvalidValue for what is no start of an allocation of this kind.
  Status release(bool onGpu, Address address);

  /// The place of `bytes` bytes; nothing where they are not all inside one allocation but begin in
  /// its address range: freed memory, or past an end.
  std::optional<int> placeOf(Address address, std::size_t bytes) const;
  struct Allocation {
    int place;
    Address begin;
    std::size_t bytes;
  };
  /// The allocation that the address is in.
  std::optional<Allocation> blockOf(Address address) const;
  std::size_t freeBytes(int gpu) const;
  /// What a context keeps for itself: some 500 MiB of a large GPU.
  void takeForContext(int gpu);
  /// One line for each allocation that is left and for each that was written past its end.
  std::vector<std::string> left() const;

 private:
  Memory();

  struct Block {
    std::size_t bytes;   // asked for
    std::size_t mapped;  // whole pages
  };
  struct Arena {
    int place = 0;
    Address begin = 0;
    Address end = 0;
    /// Where the next search for room starts: freed addresses are reused as late as possible.
    Address next = 0;
    std::size_t limit = 0;
    std::size_t used = 0;
    std::map<Address, Block> blocks;
  };
  static bool place(Arena& arena, std::size_t span, Address* address);
  Arena* arenaOf(Address address);
  const Arena* arenaOf(Address address) const;

  /// Shared by those who only look: streams that did so would otherwise be in order by accident,
  /// and ThreadSanitizer could not find what lacks an event.
  mutable std::shared_mutex mutex_;
  std::vector<Arena> arenas_;
  std::vector<std::string> overruns_;
};

}  // namespace gradlink::fake
