// Collectives whose data is too long to go with their announcement: cut into stages, several of
// which are on the way at once, so that reducing and sending overlap.
#pragma once

#include <cstddef>
#include <span>

#include "core/call.h"
#include "core/counted.h"
#include "messages/agreement.h"
#include "messages/rank_link.h"
#include "messages/scratch.h"

namespace gradlink::messages {

struct StagedCall {
  Shape shape;
  /// This rank's; null where the call does not need it.
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// allReduce, reduce, reduceScatter. Each rank reduces a part, from everybody's inputs at once and
/// in the order of the ranks: results do not depend on the number of stages, and are the same bits
/// as the embedded engine's. Everybody has met.
void runReduction(Link& link, const StagedCall& call, Scratch& scratch, Wait& wait);

/// Each rank but the root gets a part and passes it on to the others, so that the root sends every
/// byte once.
void runBroadcast(Link& link, const StagedCall& call, Wait& wait);

/// allGather, gather, scatter, allToAll: blocks go straight where they belong.
void runMoves(Link& link, const StagedCall& call, Wait& wait);

/// allToAllV, allGatherV, gatherV, scatterV, of which everybody has told the counts.
void runCountedMoves(Link& link, const Call& call, const CountedTable& table, Wait& wait);

/// neighborAllReduce, with everybody's rows.
void runNeighbors(Link& link, const StagedCall& call, std::span<const WeightRow> rows,
                  Scratch& scratch, Wait& wait);

}  // namespace gradlink::messages
