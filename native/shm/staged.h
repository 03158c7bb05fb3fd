// Collectives between processes with private buffers: chunk by chunk through slots in the segment
// that stay in cache, so main memory sees little more than one read and one write of each buffer.
//
// Rejected alternatives (2 ranks, float32, time relative to staging; best of many runs on busy
// cores; November 2026):
// - process_vm_readv (each rank reduces its part from pieces of 256 KiB that it reads of the other,
//   then reads the other's part). EPYC Zen 4: 2.2 at 1 MiB, 2.1 at 16 MiB in place, 1.8 at 64 MiB.
//   Xeon (Sapphire Rapids), 1, 4, 16 and 64 MiB: in place 1.03, 0.96, 1.17, 2.0, out of place 0.81,
//   0.90, 1.03, 1.14; no better by chunks. It also needs the right to trace the others.
// - cldemote of what others read next, on the Xeon: 1.2 to 1.4.
// - Fetching what another staged 8 KiB ahead of its sum into the second-level cache (EPYC Zen 4,
//   one third-level cache): 1.02 to 1.05 up to 4 MiB, 1.09 at 16.
// - Streaming whole arrays in one chunk, as vLLM does, on cores that share no cache: 1.04 to 1.13.
// - More chunks between a rank's stages and its sums: 0.86 to 1.0 from 16 MiB, 1.0 below.
//
// Results go back in the slots of their inputs: a line is written by the core that had it last, and
// crosses between two cores twice, where one in a ring of its own is taken from its reader for each
// write. Time relative to such a ring on the Xeon, 2 ranks in place: 0.70 at 64 and 256 KiB, 0.75
// at 1 and 4 MiB, 0.82 at 16; out of place 0.76 to 0.85. 3 ranks 0.7 to 0.85, 4 ranks 0.75 to 0.9,
// 8 as before. Past the caches it is slower (1.02 to 1.13 in a bare loop), so that way keeps its
// ring.
//
// The number of slots in use is measured (staging_styles.h). 2 processes, plain arrays, in place,
// time of 4 slots of 128 KiB relative to 16 of 256 KiB at 64 KiB, 256 KiB, 1, 4, 8 MiB: 0.62, 0.57,
// 0.54, 0.50, 0.63 (EPYC Zen 3, 512 KiB of second-level cache); of 4 of 256 KiB at 64 KiB, 1, 4, 8,
// 16 MiB: 1.5, 1.10, 0.90, 0.84, 0.91 (Zen 5, 1 MiB).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/call.h"
#include "core/direct.h"
#include "shm/session.h"
#include "shm/staging_styles.h"

namespace gradlink::shm {

struct StagedCall {
  Shape shape;
  /// This rank's; null if unneeded.
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::span<const WeightRow> weights;
};

/// How elements `from` to `to` of a rank's blocks are cut into chunks.
struct StagedChunks {
  StagedChunks(const Segment& segment, const Shape& shape, Way way, std::size_t from,
               std::size_t to);
  std::size_t begin(std::uint32_t i) const { return from + i * elements; }
  std::size_t length(std::uint32_t i) const { return std::min(elements, to - begin(i)); }

  std::size_t from;
  std::size_t to;
  std::size_t blocks = 1;
  std::size_t elements;
  std::uint32_t total;
};

/// The number of ways for a staged call; see staging_styles.h.
int waysOf(const Segment& segment, const Shape& shape);
/// The elements at a call's beginning that try another way.
std::size_t probedElements(const Segment& segment, const Shape& shape);

/// The progress of staged calls, equal on every rank. Chunks are numbered across calls.
struct StagedProgress {
  std::uint32_t chunks = 0;
  /// The next slot of each way: the slot read last is written last.
  std::size_t place[kWhole + 1] = {};
  /// Whether the rings have been used once; before, writes are as slow as new pages.
  bool warm = false;
};

class RingSlots {
 public:
  /// `bytes`: of the largest chunk.
  RingSlots(const Segment& segment, Way way, std::size_t bytes, const StagedProgress& progress);
  /// After how many chunks a slot is reused; at least 4.
  std::uint32_t count() const { return count_; }
  std::byte* stage(int rank, std::uint32_t chunk) const {
    return segment_.stage(rank) + place(chunk);
  }
  /// With kStreaming, the rank's part of a chunk: 1/size of it.
  std::byte* result(int rank, std::uint32_t chunk) const {
    return segment_.result(rank) + place(chunk) / static_cast<std::size_t>(segment_.size());
  }
  StagedProgress after(const StagedProgress& before, std::uint32_t chunks) const;

 private:
  std::size_t place(std::uint32_t chunk) const { return (first_ + chunk) % count_ * bytes_; }

  const Segment& segment_;
  std::size_t bytes_;
  std::uint32_t count_;
  std::uint32_t first_;
  Way way_;
};

/// The common part of all calls through the rings: one rank's part of elements `from` to `to`.
class StagedRun {
 protected:
  StagedRun(Session& session, const StagedCall& call, StagingWork& work, CallTimeout& callTimeout,
            const StagedProgress& progress, Way way, std::size_t from, std::size_t to);

  template <class Body>
  void timed(Body body) {
    work_.timed(way_, body);
  }
  void awaitStaged(int rank, std::uint32_t i) {
    session_.waiter().await(session_.segment().rank(rank).staged, first_ + i + 1, watch_.on(rank));
  }
  void awaitConsumed(int rank, std::uint32_t i) {
    session_.waiter().await(session_.segment().rank(rank).consumed, first_ + i + 1,
                            watch_.on(rank));
  }
  void publishStaged(std::uint32_t i) {
    session_.waiter().publish(session_.own().staged, first_ + i + 1);
  }
  void publishConsumed(std::uint32_t i) {
    session_.waiter().publish(session_.own().consumed, first_ + i + 1);
  }
  /// With `meet`, waits until all ranks have read everything: the next calls use other slots.
  StagedProgress finish(const StagedProgress& before, bool meet);

  Session& session_;
  const StagedCall& call_;
  StagingWork& work_;
  CallWatch watch_;
  const Way way_;
  const std::uint32_t first_;
  const int rank_;
  const int size_;
  const std::size_t elementSize_;
  const StagedChunks chunks_;
  const RingSlots slots_;
  /// Whether what others read next bypasses the caches.
  const bool stagesPast_;
  /// For what only this rank reads.
  const ResultStores results_;
};

/// All ranks have met for this call.
void runStaged(Session& session, const StagedCall& call, StagingWork& work,
               CallTimeout& callTimeout, StagedProgress& progress);

/// For an all-reduce: each rank reduces the part of every chunk that it owns.
StagedProgress runStagedAllReduce(Session& session, const StagedCall& call, StagingWork& work,
                                  CallTimeout& callTimeout, const StagedProgress& progress, Way way,
                                  std::size_t from, std::size_t to, bool meet);

}  // namespace gradlink::shm
