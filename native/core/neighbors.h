// Exchanges with some of the ranks, written over the calls that every backend has: what
// Communicator's are where a backend has none of its own. For communicators that hold one rank, of
// the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "core/kernels/dtype.h"

namespace gradlink {

/// What one source sends.
struct NeighborBlock {
  int rank;
  std::size_t count;
};

/// What one rank sends to each of its destinations, and awaits.
struct NeighborLists {
  int rank;
  std::size_t count;
  std::span<const NeighborBlock> sources;
  std::span<const int> destinations;
};

/// Who sends how much to whom, as all ranks tell one another before anything moves.
class NeighborTable {
 public:
  /// Puts what each rank tells (`bytes` each) one after the other into `all`; `own` is what the
  /// ranks held here tell, likewise.
  using Exchange = std::function<void(const void* own, void* all, std::size_t bytes)>;

  /// Collective. `own`: of each rank held here. Throws invalidArgument for lists that name the rank
  /// itself or one twice, before anything is told; where ranks disagree (element type, counts, who
  /// sends to whom) the same mismatch on all of them.
  NeighborTable(std::span<const NeighborLists> own, int size, DType dtype,
                const Exchange& exchange);

  /// Elements that the rank sends to each of its destinations.
  std::size_t count(int rank) const { return static_cast<std::size_t>(at(rank, 0)); }
  bool sends(int from, int to) const { return at(from, 2 + size_ + to) != kNone; }

 private:
  // Of each rank: count and type, then for each rank how much it expects from it, then whether it
  // sends there.
  static constexpr std::int64_t kNone = -1;

  std::int64_t at(int rank, int column) const {
    return cells_[static_cast<std::size_t>(rank) * width_ + static_cast<std::size_t>(column)];
  }
  void check() const;

  int size_;
  std::size_t width_;
  std::vector<std::int64_t> cells_;
};

/// Collective over all ranks. Sends `count` elements to each destination and puts what the sources
/// send one after the other into `out`, in the order of `sources`. Where ranks disagree (element
/// type, counts, who sends to whom) all throw the same mismatch, and nothing was sent.
void neighborAllGather(Communicator& communicator, const void* in, std::size_t count, DType dtype,
                       void* out, std::span<const NeighborBlock> sources,
                       std::span<const int> destinations, const CallOptions& options);

/// Between two ranks, each naming the other: out = selfWeight * in + pairWeight * the peer's in.
/// Float types only; out may be in.
void pairGossip(Communicator& communicator, const void* in, void* out, std::size_t count,
                DType dtype, int peer, double selfWeight, double pairWeight,
                const CallOptions& options);

}  // namespace gradlink
