// Neighbor exchanges over the calls that every backend has, for backends without their own. For
// communicators that hold one rank, in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agreement.h"
#include "core/communicator.h"
#include "core/kernels/dtype.h"

namespace gradlink {

/// Exchanges who sends how much to whom. The head of a rank is its count and its element type.
///
/// Collective. `own`: one for each held rank. Throws invalidArgument, before anything is sent, for
/// lists that name the rank itself or one twice. Throws the same mismatch on all ranks if types,
/// counts or lists disagree.
RankTable neighborTable(std::span<const NeighborGather> own, int size, DType dtype,
                        const Exchange& exchange);

/// Collective. If ranks disagree (type, counts, lists) all throw the same mismatch before any send.
void runNeighborAllGather(Communicator& communicator, const Call& call);

/// Between two ranks that name each other; out may be in.
void runPairGossip(Communicator& communicator, const Call& call);

}  // namespace gradlink
