#include "kvstore/worker/placement.h"

#include <algorithm>
#include <numeric>

namespace gradlink::dist {
namespace {

// The granularity of cuts: whole words of compressed codes, whole cache lines of float32.
constexpr std::size_t kCut = 32;

// Cuts between rows may make shards uneven by this part of one.
constexpr std::size_t kEvenParts = 8;

}  // namespace

ShardPlacer::ShardPlacer(int servers, std::size_t bigArrayBound)
    : bound_(bigArrayBound), bytes_(static_cast<std::size_t>(servers)) {}

std::size_t ShardPlacer::stepOf(std::size_t count, std::size_t rowLength) const {
  const std::size_t words = kCut / std::gcd(kCut, rowLength);
  const std::size_t most = count / bytes_.size() / kEvenParts;
  return rowLength <= most / words ? rowLength * words : kCut;
}

bool ShardPlacer::cutsRows(std::size_t count, std::size_t rowLength) const {
  if (count < bound_ || bytes_.size() < 2) return false;
  return stepOf(count, rowLength) % rowLength != 0;
}

std::vector<Shard> ShardPlacer::place(std::size_t count, DType dtype, std::size_t rowLength) {
  std::vector<Shard> shards;
  const auto add = [&](std::size_t server, std::size_t first, std::size_t end) {
    if (first == end) return;
    shards.push_back({next_++, static_cast<int>(server), first, end - first});
    bytes_[server] += (end - first) * sizeOf(dtype);
  };
  const std::size_t servers = bytes_.size();
  if (count < bound_) {
    const auto least = std::min_element(bytes_.begin(), bytes_.end());
    add(static_cast<std::size_t>(least - bytes_.begin()), 0, count);
    return shards;
  }
  const std::size_t step = stepOf(count, rowLength);
  const auto cutAt = [&](std::size_t i) {
    if (i == servers) return count;
    // Quotient and remainder separately, so the product cannot overflow.
    const std::size_t exact = count / servers * i + count % servers * i / servers;
    return std::min(count, (exact + step / 2) / step * step);
  };
  for (std::size_t server = 0; server < servers; ++server) {
    add(server, cutAt(server), cutAt(server + 1));
  }
  return shards;
}

}  // namespace gradlink::dist
