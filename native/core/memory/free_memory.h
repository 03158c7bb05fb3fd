// Memory that can be taken before the kernel kills processes, by machine and control groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gradlink {

/// The kernel's files; tests use others.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string groups = "/proc/self/cgroup";
  std::string hierarchy = "/sys/fs/cgroup";
};

struct FreeMemory {
  /// What can be taken. A reserve stays for page tables and for other allocations of the program.
  std::uint64_t bytes = UINT64_MAX;
  /// The source of the limit, for messages.
  std::string of = "the machine";
};

/// Unlimited if the kernel reports nothing.
FreeMemory freeMemory(const MemoryFiles& files = {});

/// Throws Error(outOfMemory), which leaves the communicator usable, if `bytes` more are not
/// available. Small sizes are not checked. `whole`: the total that they are a part of.
void requireMemory(const char* op, std::size_t bytes, std::size_t whole = 0);

}  // namespace gradlink
