#include "cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace gradlink::fake {
namespace {

constexpr std::size_t kPage = 4096;
/// The most of an allocation that is filled, at either end: more would cost memory that nobody
/// uses.
constexpr std::size_t kMostFilled = 128 << 10;
constexpr int kFill = 0xa5;
constexpr int kCanary = 0xc7;
constexpr std::size_t kHostLimit = std::size_t{64} << 30;

std::string whose(int place) {
  return place == kHost ? "page-locked memory" : "memory of gpu:" + std::to_string(place);
}

/// "memory of gpu:0, 64 bytes at 0x7f0000001000".
std::string describe(int place, Address address, std::size_t bytes) {
  char text[96];
  std::snprintf(text, sizeof text, ", %zu bytes at %p", bytes, pointer(address));
  return whose(place) + text;
}

/// Fills memory that was never touched, from a page's beginning on.
void fill(char* at, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  // In one call, where each page's first write would be a fault; a kernel that knows no such call
  // takes the faults.
  ::madvise(at, bytes, MADV_POPULATE_WRITE);
#endif
  std::memset(at, kFill, bytes);
}

/// The rest of the last page holds a pattern; whether it is whole.
bool canaryWhole(Address address, std::size_t bytes, std::size_t mapped) {
  const auto* rest = static_cast<const unsigned char*>(pointer(address)) + bytes;
  return std::all_of(rest, rest + (mapped - bytes), [](unsigned char b) { return b == kCanary; });
}

}  // namespace

Memory& Memory::get() {
  static Memory& memory = *new Memory;
  return memory;
}

Memory::Memory() {
  const Machine& machine = Machine::get();
  for (int place = kHost; place < machine.count(); ++place) {
    const std::size_t limit = place == kHost ? kHostLimit : machine.gpu(place).memoryBytes;
    // Twice what may be in use, for addresses that rest before they are used again.
    const std::size_t span = std::max<std::size_t>(2 * limit, std::size_t{1} << 30);
    void* const base =
        ::mmap(nullptr, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      std::fprintf(stderr, "gradlink fakes: no room for %zu bytes of addresses\n", span);
      std::abort();
    }
    const Address begin = reinterpret_cast<Address>(base);
    arenas_.push_back({.place = place,
                       .begin = begin,
                       .end = begin + span,
                       .next = begin,
                       .limit = limit,
                       .used = 0,
                       .blocks = {}});
  }
}

bool Memory::place(Arena& arena, std::size_t span, Address* address) {
  // First from `next` on, then from the start.
  for (const Address start : {arena.next, arena.begin}) {
    Address at = start;
    auto block = arena.blocks.upper_bound(at);
    if (block != arena.blocks.begin()) {
      const auto before = std::prev(block);
      // One page between allocations belongs to none.
      at = std::max(at, before->first + before->second.mapped + kPage);
    }
    for (; block != arena.blocks.end() && at + span + kPage > block->first; ++block) {
      at = block->first + block->second.mapped + kPage;
    }
    if (at + span <= arena.end) {
      *address = at;
      return true;
    }
  }
  return false;
}

Status Memory::allocate(int where, std::size_t bytes, Address* address) {
  if (bytes == 0) return kInvalidValue;
  const std::lock_guard lock(mutex_);
  Arena& arena = arenas_[where + 1];
  if (bytes > arena.limit - arena.used) return kOutOfMemory;
  const std::size_t mapped = (bytes + kPage - 1) / kPage * kPage;
  if (!place(arena, mapped, address)) return kOutOfMemory;
  if (::mprotect(pointer(*address), mapped, PROT_READ | PROT_WRITE) != 0) return kOutOfMemory;
  auto* const begin = static_cast<char*>(pointer(*address));
  if (mapped <= 2 * kMostFilled) {
    fill(begin, mapped);
  } else {
    fill(begin, kMostFilled);
    fill(begin + mapped - kMostFilled, kMostFilled);
  }
  std::memset(begin + bytes, kCanary, mapped - bytes);
  arena.blocks[*address] = {.bytes = bytes, .mapped = mapped};
  arena.next = *address + mapped;
  arena.used += bytes;
  return kOk;
}

Status Memory::release(bool onGpu, Address address) {
  const std::lock_guard lock(mutex_);
  Arena* const arena = arenaOf(address);
  if (!arena || (arena->place != kHost) != onGpu) return kInvalidValue;
  const auto block = arena->blocks.find(address);
  if (block == arena->blocks.end()) return kInvalidValue;
  const auto [bytes, mapped] = block->second;
  if (!canaryWhole(address, bytes, mapped)) {
    overruns_.push_back("written past its end: " + describe(arena->place, address, bytes));
  }
  ::madvise(pointer(address), mapped, MADV_DONTNEED);
  ::mprotect(pointer(address), mapped, PROT_NONE);
  arena->used -= bytes;
  arena->blocks.erase(block);
  return kOk;
}

Memory::Arena* Memory::arenaOf(Address address) {
  for (Arena& arena : arenas_) {
    if (address >= arena.begin && address < arena.end) return &arena;
  }
  return nullptr;
}

const Memory::Arena* Memory::arenaOf(Address address) const {
  return const_cast<Memory*>(this)->arenaOf(address);
}

std::optional<int> Memory::placeOf(Address address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const Arena* const arena = arenaOf(address);
  if (!arena) return kPageable;
  const auto after = arena->blocks.upper_bound(address);
  if (after == arena->blocks.begin()) return std::nullopt;
  const auto& [begin, block] = *std::prev(after);
  if (address - begin > block.bytes || bytes > block.bytes - (address - begin)) return std::nullopt;
  return arena->place;
}

std::optional<Memory::Allocation> Memory::blockOf(Address address) const {
  const std::shared_lock lock(mutex_);
  const Arena* const arena = arenaOf(address);
  if (!arena) return std::nullopt;
  const auto after = arena->blocks.upper_bound(address);
  if (after == arena->blocks.begin()) return std::nullopt;
  const auto& [begin, block] = *std::prev(after);
  return Allocation{.place = arena->place, .begin = begin, .bytes = block.bytes};
}

void Memory::takeForContext(int gpu) {
  const std::lock_guard lock(mutex_);
  Arena& arena = arenas_[gpu + 1];
  arena.used += std::min(arena.limit / 32, arena.limit - arena.used);
}

std::size_t Memory::freeBytes(int gpu) const {
  const std::lock_guard lock(mutex_);
  const Arena& arena = arenas_[gpu + 1];
  return arena.limit - arena.used;
}

std::vector<std::string> Memory::left() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines = overruns_;
  for (const Arena& arena : arenas_) {
    for (const auto& [address, block] : arena.blocks) {
      if (!canaryWhole(address, block.bytes, block.mapped)) {
        lines.push_back("written past its end: " + describe(arena.place, address, block.bytes));
      }
      lines.push_back("not freed: " + describe(arena.place, address, block.bytes));
    }
  }
  return lines;
}

}  // namespace gradlink::fake
