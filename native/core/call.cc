#include "core/call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/agreement.h"
#include "core/error.h"

namespace gradlink {

namespace {

const double* weightOf(const std::vector<Neighbor>& list, int rank) {
  auto found =
      std::find_if(list.begin(), list.end(), [&](const Neighbor& n) { return n.rank == rank; });
  return found == list.end() ? nullptr : &found->weight;
}

void checkList(const std::vector<Neighbor>& list, const char* what, int rank, int size) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (const Neighbor& n : list) {
    const bool inside = n.rank >= 0 && n.rank < size && n.rank != rank;
    if (!inside || seen[static_cast<std::size_t>(n.rank)]) {
      throw misuse("neighborAllReduce", "rank " + std::to_string(rank) + " names " + what + " " +
                                            std::to_string(n.rank) + (inside ? " twice" : "") +
                                            "; expected each other rank of 0.." +
                                            std::to_string(size - 1) + " at most once");
    }
    seen[static_cast<std::size_t>(n.rank)] = true;
  }
}

// Doubles: the rank's own weight, whether it wants the lists compared, the divisor of its sum, then
// its weight of each rank as a source and as a destination; NaN: not in the list.
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

bool WeightRow::reads(int rank) const {
  return std::any_of(terms.begin(), terms.end(),
                     [rank](const auto& term) { return term.first == rank; });
}

void checkNeighborhood(const Neighborhood& own, int rank, int size) {
  checkList(own.sources, "source", rank, size);
  checkList(own.destinations, "destination", rank, size);
}

std::vector<WeightRow> resolveNeighbors(std::span<const Neighborhood> all) {
  const int size = static_cast<int>(all.size());
  auto of = [&](int rank) -> const Neighborhood& { return all[static_cast<std::size_t>(rank)]; };
  const bool checked =
      std::any_of(all.begin(), all.end(), [](const Neighborhood& one) { return one.check; });
  for (int r = 0; checked && r < size; ++r) checkNeighborhood(of(r), r, size);
  constexpr const char* kOp = "neighborAllReduce";
  std::vector<WeightRow> rows(all.size());
  for (int r = 0; r < size; ++r) {
    WeightRow& row = rows[static_cast<std::size_t>(r)];
    row.divisor = of(r).divisor;
    row.terms.emplace_back(r, of(r).selfWeight);
    for (const Neighbor& source : of(r).sources) {
      const double* sent = weightOf(of(source.rank).destinations, r);
      if (sent == nullptr && checked) throw unmatched(kOp, source.rank, r, false);
      row.terms.emplace_back(source.rank, source.weight * (sent == nullptr ? 1 : *sent));
    }
    if (!checked) continue;
    for (const Neighbor& destination : of(r).destinations) {
      if (weightOf(of(destination.rank).sources, r) == nullptr) {
        throw unmatched(kOp, r, destination.rank, true);
      }
    }
  }
  return rows;
}

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

void checkShape(const Shape& shape, int size, bool gpu) {
  const char* const op = nameOf(shape.kind);
  if (hasRoot(shape.kind) && (shape.root < 0 || shape.root >= size)) {
    throw misuse(op, "root " + std::to_string(shape.root) + " is not a rank; expected 0.." +
                         std::to_string(size - 1));
  }
  if (isFloat8(shape.dtype) && !gpu) {
    throw misuse(op, std::string(nameOf(shape.dtype)) +
                         " is a type of GPUs: the host has no arithmetic for it");
  }
  if (gpu && shape.kind == Kind::neighborAllReduce && !isFloat(shape.dtype)) {
    throw misuse(op, std::string("weights need a float type on GPUs, not ") + nameOf(shape.dtype) +
                         "; ranks in the memory of the host take integers");
  }
  if (isScan(shape.kind) && shape.op == ReduceOp::avg) {
    throw misuse(
        op,
        "expected sum, prod, min or max for op, got avg; for the mean of the ranks so far, "
        "divide their sum");
  }
  // Engines count the bytes of all blocks in size_t: 8 bytes an element, at most 2^12 ranks.
  if (shape.count > SIZE_MAX >> 16) {
    throw misuse(op, "count " + std::to_string(shape.count) + " is more than memory can hold");
  }
}

void checkPointers(const Shape& shape, int size, int rank, const void* in, const void* out) {
  if (shape.count == 0) return;
  const bool noIn = in == nullptr && inBlocks(shape, size, rank) > 0;
  const bool noOut = out == nullptr && outBlocks(shape, size, rank) > 0;
  if (noIn || noOut) {
    throw misuse(nameOf(shape.kind), "rank " + std::to_string(rank) + " needs an " +
                                         (noIn ? "input" : "output") + " buffer, got null")
        .withRank(rank);
  }
}

void checkPeer(const char* op, int peer, int size) {
  if (peer >= 0 && peer < size) return;
  throw misuse(op,
               std::to_string(peer) + " is not a rank; expected 0.." + std::to_string(size - 1));
}

}  // namespace gradlink
