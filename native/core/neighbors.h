// Exchanges with some of the ranks, written over the calls that every backend has. For
// communicators that hold one rank, of the host's memory.
#pragma once

#include <cstddef>
#include <span>

#include "core/communicator.h"
#include "core/dtype.h"

namespace gradlink {

/// What one source sends.
struct NeighborBlock {
  int rank;
  std::size_t count;
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
