// How much memory can still be taken before the kernel ends processes to get some: what the machine
// has and what this process's control groups let it have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gradlink {

/// Where the kernel tells of it; others in tests.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string groups = "/proc/self/cgroup";
  std::string hierarchy = "/sys/fs/cgroup";
};

struct FreeMemory {
  /// What can be taken. A part of what there is remains for others: for page tables, for what the
  /// program allocates itself meanwhile.
  std::uint64_t bytes = UINT64_MAX;
  /// Who sets the bound, in words.
  std::string of = "the machine";
};

/// Unbounded where the kernel tells nothing.
FreeMemory freeMemory(const MemoryFiles& files = {});

/// Throws Error(outOfMemory), after which the communicator is usable, where `bytes` more are not to
/// be had. Little is not asked for: it costs less than asking. `whole`: what they are a
/// slice of.
void requireMemory(const char* op, std::size_t bytes, std::size_t whole = 0);

}  // namespace gradlink
