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

/// Who sends how much to whom, as all ranks tell one another before anything moves.
class NeighborTable {
 public:
  /// Puts what each rank tells (`bytes` each) one after the other into `all`; `own` is what the
  /// ranks held here tell, likewise.
  using Exchange = std::function<void(const void* own, void* all, std::size_t bytes)>;

  /// Collective. `own`: of each rank held here. Throws invalidArgument for lists that name the rank
  /// itself or one twice, before anything is told; where ranks disagree (element type, counts, who
  /// sends to whom) the same mismatch on all of them.
  NeighborTable(std::span<const NeighborGather> own, int size, DType dtype,
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

/// Collective over all ranks. Where ranks disagree (element type, counts, who sends to whom) all
/// throw the same mismatch, and nothing was sent.
void runNeighborAllGather(Communicator& communicator, const Call& call);

/// Between two ranks, each naming the other; out may be in.
void runPairGossip(Communicator& communicator, const Call& call);

}  // namespace gradlink
