// Collectives too long for the announcement, in concurrent stages: reducing and sending overlap.
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
  /// This rank's; null if unneeded.
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// allReduce, reduce, reduceScatter. Each rank reduces a part from all inputs in rank order: the
/// bits do not depend on the number of stages and equal the embedded engine's. All ranks have met.
void runReduction(Link& link, const StagedCall& call, Scratch& scratch, Wait& wait);

/// Each rank but the root gets a part and forwards it, so the root sends every byte once.
void runBroadcast(Link& link, const StagedCall& call, Wait& wait);

/// allGather, gather, scatter, allToAll: blocks go directly to their receivers.
void runMoves(Link& link, const StagedCall& call, Wait& wait);

/// allToAllV, allGatherV, gatherV, scatterV, with the counts of all ranks.
void runCountedMoves(Link& link, const Call& call, const CountedTable& table, Wait& wait);

/// neighborAllReduce, with the rows of all ranks.
void runNeighbors(Link& link, const StagedCall& call, std::span<const WeightRow> rows,
                  Scratch& scratch, Wait& wait);

}  // namespace gradlink::messages
