// Each rank owns a part of every chunk. It stages what others own, reduces its part from its own
// input and the others' slots, writes the results over these, and copies the parts that others
// reduced back from its own slot. The three steps lag one chunk behind each other, so waits are
// rare. With kWhole both of two ranks own everything.
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
              const StagedProgress& progress, Way way, std::size_t from, std::size_t to)
      : StagedRun(session, call, work, callTimeout, progress, way, from, to),
        sources_(static_cast<std::size_t>(size_)) {}

  // A slot is reused 4 chunks later at the earliest. No counter says that its readers are done: a
  // rank stages chunk k only after it copied the results of k - 3, which it reduced before; and a
  // new call begins after all ranks finished the previous one.

  StagedProgress run(const StagedProgress& before, bool meet) {
    const std::uint32_t total = chunks_.total;
    for (std::uint32_t i = 0; i < total + 2; ++i) {
      if (i < total) stage(i);
      if (i >= 1 && i <= total) reduce(i - 1);
      if (i >= 2) collect(i - 2);
    }
    return finish(before, meet);
  }

 private:
  struct Part {
    std::size_t inChunk;  // elements from the chunk's start
    std::size_t length;
  };
  bool isWhole() const { return way_ == kWhole; }
  /// Whether results go back in the slots that the inputs came in.
  bool isReturned() const { return way_ == kDeep || way_ == kShallow; }
  Part part(std::uint32_t i, int owner) const {
    if (isWhole()) return {0, chunks_.length(i)};
    const std::size_t line = kLine / elementSize_;
    const std::size_t ranks = static_cast<std::size_t>(size_);
    const std::size_t share = ((chunks_.length(i) + ranks - 1) / ranks + line - 1) / line * line;
    const std::size_t from = std::min(static_cast<std::size_t>(owner) * share, chunks_.length(i));
    return {from, std::min(share, chunks_.length(i) - from)};
  }
  std::size_t offset(std::uint32_t i, const Part& part) const {
    return (chunks_.begin(i) + part.inChunk) * elementSize_;
  }

  void stage(std::uint32_t i) {
    std::byte* slot = slots_.stage(rank_, i);
    // The parts before and after this rank's own.
    const Part own = isWhole() ? Part{0, 0} : part(i, rank_);
    const std::size_t after = own.inChunk + own.length;
    timed([&] {
      copyStretch(slot, i, {0, own.inChunk});
      copyStretch(slot, i, {after, chunks_.length(i) - after});
    });
    publishStaged(i);
  }
  void copyStretch(std::byte* slot, std::uint32_t i, Part stretch) {
    if (stretch.length == 0) return;
    void* const dst[] = {slot + stretch.inChunk * elementSize_};
    copyMany(dst, call_.in + offset(i, stretch), stretch.length * elementSize_, stagesPast_);
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
      destinations_.clear();
      if (way_ == kStreaming) destinations_.push_back(slots_.result(rank_, i));
      for (int r = 0; r < size_ && isReturned(); ++r) {
        if (r != rank_) destinations_.push_back(slots_.stage(r, i) + own.inChunk * elementSize_);
      }
      destinations_.push_back(call_.out + offset(i, own));
      const auto sum = [&](Streaming streaming) {
        reduceMany(destinations_, sources_, own.length, call_.shape.dtype, call_.shape.op,
                   streaming);
      };
      timed([&] {
        if (isWhole()) return results_.write(own.length * elementSize_, sum);
        sum(Streaming::leading(stagesPast_ ? 1 : 0));
      });
    }
    publishConsumed(i);
  }

  void collect(std::uint32_t i) {
    for (int step = 1; step < size_; ++step) {
      const int r = (rank_ + step) % size_;
      awaitConsumed(r, i);
      const Part theirs = part(i, r);
      if (isWhole() || theirs.length == 0) continue;
      void* const dst[] = {call_.out + offset(i, theirs)};
      const std::byte* const from = isReturned()
                                        ? slots_.stage(rank_, i) + theirs.inChunk * elementSize_
                                        : slots_.result(r, i);
      const std::size_t bytes = theirs.length * elementSize_;
      timed([&] {
        results_.write(bytes, [&](bool streaming) { copyMany(dst, from, bytes, streaming); });
      });
    }
  }

  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
};

}  // namespace

StagedProgress runStagedAllReduce(Session& session, const StagedCall& call, StagingWork& work,
                                  CallTimeout& callTimeout, const StagedProgress& progress, Way way,
                                  std::size_t from, std::size_t to, bool meet) {
  return OwnerReduce(session, call, work, callTimeout, progress, way, from, to).run(progress, meet);
}

}  // namespace gradlink::shm
