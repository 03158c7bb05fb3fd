// Exchanges with some of the ranks, written over the calls that every backend has: what
// Communicator's are where a backend has none of its own. For communicators that hold one rank, of
// the host's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agreement.h"
#include "core/communicator.h"
#include "core/kernels/dtype.h"

namespace gradlink {

/// Who sends how much to whom, as all ranks tell one another before anything moves; the head of a
/// rank is how much it sends to each, then its element type.
///
/// Collective. `own`: of each rank held here. Throws invalidArgument for lists that name the rank
/// itself or one twice, before anything is told; where ranks disagree (element type, counts, who
/// sends to whom) the same mismatch on all of them.
RankTable neighborTable(std::span<const NeighborGather> own, int size, DType dtype,
                        const Exchange& exchange);

/// Collective over all ranks. Where ranks disagree (element type, counts, who sends to whom) all
/// throw the same mismatch, and nothing was sent.
void runNeighborAllGather(Communicator& communicator, const Call& call);

/// Between two ranks, each naming the other; out may be in.
void runPairGossip(Communicator& communicator, const Call& call);

}  // namespace gradlink
