#include "core/kernels/result_stores.h"

#include <algorithm>
#include <memory>

#include "core/kernels/similar_calls.h"
#include "core/memory/cache.h"

namespace gradlink {

bool ResultStores::outgrowsCaches(std::size_t bytes) {
  // Fewer stay cached for whoever reads them next, which nobody here measures. Half is for inputs:
  // 8 MiB of results in a cache of 32 MiB took twice as long past it.
  constexpr std::size_t kMostKeptBytes = 16 << 20;
  static const std::size_t kept = std::min(lastLevelCacheBytes() / 2, kMostKeptBytes);
  return bytes > kept;
}

StoreStyle& ResultStores::styleOf(std::uint64_t key) {
  // On the heap: a library that is loaded late finds little room for the variables of threads.
  thread_local const auto styles = std::make_unique<SimilarCalls<StoreStyle>>();
  return styles->at(key);
}

}  // namespace gradlink
