#include "core/memory/cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gradlink {
namespace {

constexpr std::size_t kUsualCache = std::size_t{32} << 20;
constexpr std::size_t kUsualSecondCache = std::size_t{1} << 20;
constexpr int kMostCaches = 8;

template <class Value>
Value cacheEntry(const std::string& file) {
  Value value{};
  std::ifstream(file) >> value;
  return value;
}

/// Parses "32768K"; 0 if there is no such file.
std::size_t cacheSize(const std::string& file) {
  std::ifstream in(file);
  std::size_t size = 0;
  char unit = 0;
  in >> size >> unit;
  return size << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

/// The highest level up to `most` that the kernel reports, or 0.
std::size_t cacheBytes(const std::string& folder, int most) {
  int last = 0;
  std::size_t bytes = 0;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string one = folder + "/index" + std::to_string(i);
    const int level = cacheEntry<int>(one + "/level");
    if (level <= last || level > most) continue;
    if (cacheEntry<std::string>(one + "/type") == "Instruction") continue;
    last = level;
    bytes = cacheSize(one + "/size");
  }
  return bytes;
}

constexpr const char* kFirstCore = "/sys/devices/system/cpu/cpu0/cache";

}  // namespace

std::size_t lastLevelCacheBytes(const std::string& folder, long library) {
  if (const std::size_t bytes = cacheBytes(folder, kMostCaches); bytes > 0) return bytes;
  // Without information on sharing, as in many virtual machines, the library adds up all caches of
  // an AMD socket: 508 MiB for cores with 32 MiB each.
  return library > 0 ? std::min(static_cast<std::size_t>(library), kUsualCache) : kUsualCache;
}

std::size_t secondLevelCacheBytes(const std::string& folder, long library) {
  if (const std::size_t bytes = cacheBytes(folder, 2); bytes > 0) return bytes;
  return library > 0 ? static_cast<std::size_t>(library) : kUsualSecondCache;
}

std::size_t lastLevelCacheBytes() {
  static const std::size_t bytes = lastLevelCacheBytes(kFirstCore, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return bytes;
}

std::size_t secondLevelCacheBytes() {
  static const std::size_t bytes =
      secondLevelCacheBytes(kFirstCore, sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes;
}

}  // namespace gradlink
