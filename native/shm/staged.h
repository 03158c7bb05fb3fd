// Collectives between processes whose buffers only their own process can address: chunk by chunk
// through slots in the segment that stay in cache, so that main memory sees little more than one
// read and one write of every buffer.
#pragma once

#include <cstddef>
#include <span>

#include "core/deadline.h"
#include "shm/call.h"
#include "shm/session.h"

namespace gradlink::shm {

struct StagedCall {
  Shape shape;
  /// This rank's; null where the call does not need it.
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::span<const WeightRow> weights;
};

/// Chunks that went through the slots so far: the same on every rank.
using ChunkCount = std::uint32_t;

/// All ranks have met for this call. Advances `chunks`.
void runStaged(Session& session, const StagedCall& call, Deadline deadline, ChunkCount& chunks);

/// All-reduce in which each rank reduces the part of every chunk that it owns.
void runStagedAllReduce(Session& session, const StagedCall& call, Deadline deadline,
                        ChunkCount& chunks);

}  // namespace gradlink::shm
