#include "cuda/cost.h"

#include <algorithm>

#include "cuda/memory.h"

namespace gradlink::fake {
namespace {

/// The driver copies through a page-locked buffer of its own.
constexpr double kPageableShare = 0.4;

}  // namespace

double linkRate(int from, int to) {
  const auto& contexts = World::get().contexts;
  const bool direct =
      from >= 0 && to >= 0 && (contexts[from]->reaches(to) || contexts[to]->reaches(from));
  return Machine::get().rate(from, to, direct);
}

double copySeconds(int from, int to, std::size_t bytes) {
  double rate = 0;
  if (from >= 0 && to >= 0) {
    rate = linkRate(from, to);
  } else if (from < 0 && to < 0) {
    rate = Machine::get().rate(kHost, 0, false);
  } else {
    rate = linkRate(std::max(from, kHost), std::max(to, kHost));
    if (from == kPageable || to == kPageable) rate *= kPageableShare;
  }
  return std::max(kShortestCopy, bytes / rate);
}

bool Traffic::add(const void* address, std::size_t bytes, bool writes) {
  if (bytes == 0) return true;
  const auto place = Memory::get().placeOf(cuda::addressOf(address), bytes);
  if (!place || *place == kPageable || (*place != kHost && !context_.reaches(*place))) {
    status_ = kIllegalAddress;
    return false;
  }
  const int here = context_.device();
  bytes_[writes ? std::pair(here, *place) : std::pair(*place, here)] += bytes;
  return true;
}

double Traffic::seconds() const {
  double slowest = kShortestKernel;
  for (const auto& [link, bytes] : bytes_) {
    // Within a GPU the rate is of a copy, which moves each byte twice.
    const double moved = link.first == link.second ? bytes / 2.0 : static_cast<double>(bytes);
    slowest = std::max(slowest, moved / Machine::get().rate(link.first, link.second, true));
  }
  return slowest;
}

}  // namespace gradlink::fake
