#include "core/memory/free_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/error.h"

namespace gradlink {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMostReserve = 256 * kMiB;

/// The number after `name` in a file of lines "name number"; an empty name reads the whole file.
std::optional<std::uint64_t> numberIn(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t value = 0;
  while (name.empty() || file >> word) {
    if (name.empty() || word == name) {
      if (file >> value) return value;
      return std::nullopt;  // "max": no limit
    }
    file.ignore(1 << 12, '\n');
  }
  return std::nullopt;
}

std::uint64_t withoutReserve(std::uint64_t available, std::uint64_t total) {
  const std::uint64_t reserve = std::min(total / 16, kMostReserve);
  return available > reserve ? available - reserve : 0;
}

struct Names {
  const char* limit;
  const char* usage;
  const char* inactive;
  const char* active;
};
constexpr Names kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                             "total_inactive_file", "total_active_file"};
constexpr Names kVersion2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

void takeGroup(const std::string& folder, const Names& names, FreeMemory& free) {
  const auto limit = numberIn(folder + "/" + names.limit, "");
  const auto usage = numberIn(folder + "/" + names.usage, "");
  if (!limit || !usage) return;
  // Cached copies of files count as used, but the kernel drops them before it kills a process.
  const std::string stat = folder + "/memory.stat";
  const std::uint64_t files =
      numberIn(stat, names.inactive).value_or(0) + numberIn(stat, names.active).value_or(0);
  const std::uint64_t used = *usage > files ? *usage - files : 0;
  const std::uint64_t bytes = withoutReserve(*limit > used ? *limit - used : 0, *limit);
  if (bytes >= free.bytes) return;
  free.bytes = bytes;
  free.of = "its control group, whose limit is " + std::to_string(*limit) + " bytes,";
}

/// Parent groups limit a group, too. In a container only the end of a host's path is visible.
void takeGroups(const std::string& root, std::string path, const Names& names, FreeMemory& free) {
  for (;;) {
    takeGroup(root + path, names, free);
    const auto slash = path.find_last_of('/');
    if (slash == std::string::npos) return;
    path.erase(slash);
  }
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == wanted) return true;
  }
  return false;
}

}  // namespace

FreeMemory freeMemory(const MemoryFiles& files) {
  FreeMemory free;
  const auto available = numberIn(files.meminfo, "MemAvailable:");
  const auto total = numberIn(files.meminfo, "MemTotal:");
  if (available && total) free.bytes = withoutReserve(*available * 1024, *total * 1024);
  // Lines "number:controllers:path"; no controllers: version 2.
  std::ifstream groups(files.groups);
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      takeGroups(files.hierarchy, path, kVersion2, free);
      takeGroups(files.hierarchy + "/unified", path, kVersion2, free);
    } else if (names(controllers, "memory")) {
      takeGroups(files.hierarchy + "/memory", path, kVersion1, free);
    }
  }
  return free;
}

void requireMemory(const char* op, std::size_t bytes, std::size_t whole) {
  if (bytes < kMiB) return;
  const FreeMemory free = freeMemory();
  if (bytes <= free.bytes) return;
  throw harmless(ErrorCode::outOfMemory, op,
                 "no memory for " + std::to_string(std::max(bytes, whole)) + " bytes: " + free.of +
                     " has " + std::to_string(free.bytes) + " left to give");
}

}  // namespace gradlink
