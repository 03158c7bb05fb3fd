#include "shm/neighbor_row.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace gradlink::shm {
namespace {

// Doubles: the rank's own weight, whether it wants the lists compared, what its sum is divided by,
// then its weight of each rank as a source and of each as a destination, NaN where it is none.
constexpr std::size_t kOwnWeight = 0;
constexpr std::size_t kCheck = 1;
constexpr std::size_t kDivisor = 2;
constexpr std::size_t kSources = 3;

double at(const std::byte* row, std::size_t i) {
  double value = 0;
  std::memcpy(&value, row + i * sizeof(double), sizeof(value));
  return value;
}

}  // namespace

void writeNeighborRow(std::byte* to, const Neighborhood& own, int size) {
  const auto n = static_cast<std::size_t>(size);
  const auto put = [to](std::size_t i, double value) {
    std::memcpy(to + i * sizeof(double), &value, sizeof(value));
  };
  put(kOwnWeight, own.selfWeight);
  put(kCheck, own.check ? 1 : 0);
  put(kDivisor, static_cast<double>(own.divisor));
  for (std::size_t i = 0; i < 2 * n; ++i)
    put(kSources + i, std::numeric_limits<double>::quiet_NaN());
  for (const Neighbor& s : own.sources) put(kSources + static_cast<std::size_t>(s.rank), s.weight);
  for (const Neighbor& d : own.destinations)
    put(kSources + n + static_cast<std::size_t>(d.rank), d.weight);
}

std::vector<WeightRow> resolveNeighborRows(int size,
                                           const std::function<const std::byte*(int rank)>& rowOf) {
  const auto n = static_cast<std::size_t>(size);
  std::vector<Neighborhood> all(n);
  for (std::size_t r = 0; r < n; ++r) {
    const std::byte* row = rowOf(static_cast<int>(r));
    all[r].selfWeight = at(row, kOwnWeight);
    all[r].check = at(row, kCheck) != 0;
    all[r].divisor = static_cast<std::size_t>(at(row, kDivisor));
    for (std::size_t p = 0; p < n; ++p) {
      const double source = at(row, kSources + p);
      const double destination = at(row, kSources + n + p);
      const int peer = static_cast<int>(p);
      if (!std::isnan(source)) all[r].sources.push_back({peer, source});
      if (!std::isnan(destination)) all[r].destinations.push_back({peer, destination});
    }
  }
  return resolveNeighbors(all);
}

}  // namespace gradlink::shm
