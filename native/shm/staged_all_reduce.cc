// Each rank owns a part of every chunk: it stages only what others own, reduces its own part from
// its private input and the others' slots, and copies the parts that others reduced. Three steps,
// each a chunk behind the one before, so that ranks seldom wait for one another.
#include <algorithm>
#include <vector>

#include "core/direct.h"
#include "core/kernels/reduce_kernels.h"
#include "shm/staged.h"

namespace gradlink::shm {
namespace {

class OwnerReduce : StagedRun {
 public:
  OwnerReduce(Session& session, const StagedCall& call, StagingWork& work, CallTimeout& callTimeout,
              const StagedProgress& progress)
      : StagedRun(session, call, work, callTimeout, progress),
        sources_(static_cast<std::size_t>(size_)) {}

  // A place is used again 4 chunks later at the earliest. That its readers are done needs no
  // counter of its own: a rank stages chunk k only after it copied the results of k - 3, and
  // reduces k - 3 before it copies them; and a new call begins when all ranks have finished the one
  // before.

  StagedProgress run(const StagedProgress& before) {
    const std::uint32_t total = chunks_.total;
    for (std::uint32_t i = 0; i < total + 2; ++i) {
      if (i < total) stage(i);
      if (i >= 1 && i <= total) reduce(i - 1);
      if (i >= 2) collect(i - 2);
    }
    return slots_.after(before, total);
  }

 private:
  struct Part {
    std::size_t inChunk;  // elements from the chunk's start
    std::size_t length;
  };
  Part part(std::uint32_t i, int owner) const {
    const std::size_t line = kLine / elementSize_;
    const std::size_t ranks = static_cast<std::size_t>(size_);
    const std::size_t share = ((length(i) + ranks - 1) / ranks + line - 1) / line * line;
    const std::size_t from = std::min(static_cast<std::size_t>(owner) * share, length(i));
    return {from, std::min(share, length(i) - from)};
  }
  std::size_t offset(std::uint32_t i, const Part& part) const {
    return (begin(i) + part.inChunk) * elementSize_;
  }

  void stage(std::uint32_t i) {
    std::byte* slot = slots_.stage(rank_, i);
    // What is owned before and after this rank's own part: two stretches at most.
    const Part own = part(i, rank_);
    const std::size_t after = own.inChunk + own.length;
    work_.timed(i, [&] {
      copyStretch(slot, i, {0, own.inChunk});
      copyStretch(slot, i, {after, length(i) - after});
    });
    publishStaged(i);
  }
  void copyStretch(std::byte* slot, std::uint32_t i, Part stretch) {
    if (stretch.length == 0) return;
    void* const dst[] = {slot + stretch.inChunk * elementSize_};
    copyMany(dst, call_.in + offset(i, stretch), stretch.length * elementSize_, work_.streaming(i));
  }

  void reduce(std::uint32_t i) {
    const Part own = part(i, rank_);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) {
        sources_[static_cast<std::size_t>(r)] = call_.in + offset(i, own);
        continue;
      }
      awaitStaged(r, i);
      sources_[static_cast<std::size_t>(r)] = slots_.stage(r, i) + own.inChunk * elementSize_;
    }
    if (own.length > 0) {
      void* const dst[] = {slots_.result(rank_, i), call_.out + offset(i, own)};
      work_.timed(i, [&] {
        // Only the first is for others.
        reduceMany(dst, sources_, own.length, call_.shape.dtype, call_.shape.op,
                   Streaming::leading(work_.streaming(i) ? 1 : 0));
      });
    }
    publishConsumed(i);
  }

  void collect(std::uint32_t i) {
    for (int step = 1; step < size_; ++step) {
      const int r = (rank_ + step) % size_;
      session_.waiter().await(session_.segment().rank(r).consumed, first_ + i + 1, watch_.on(r));
      const Part theirs = part(i, r);
      if (theirs.length == 0) continue;
      void* const dst[] = {call_.out + offset(i, theirs)};
      work_.timed(i, [&] {
        copyResults(dst, slots_.result(r, i), theirs.length * elementSize_, streaming_);
      });
    }
  }

  std::vector<const void*> sources_;
};

}  // namespace

void runStagedAllReduce(Session& session, const StagedCall& call, StagingWork& work,
                        CallTimeout& callTimeout, StagedProgress& progress) {
  progress = OwnerReduce(session, call, work, callTimeout, progress).run(progress);
}

}  // namespace gradlink::shm
