#include "shm/staged.h"

#include <algorithm>
#include <vector>

#include "core/reduce_kernels.h"
#include "shm/direct.h"

namespace gradlink::shm {
namespace {

// Whether a rank's block of input is of use to another rank.
bool isSent(const Shape& shape, int rank, std::size_t block) {
  switch (shape.kind) {
    case Kind::reduce:
    case Kind::gather:
      return rank != shape.root;
    case Kind::reduceScatter:
    case Kind::allToAll:
    case Kind::scatter:
      return block != static_cast<std::size_t>(rank);
    default:
      return true;
  }
}

class Pipeline : StagedRun {
 public:
  Pipeline(Session& session, const StagedCall& call, StagingWork& work, Patience& patience,
           const StagedProgress& progress)
      : StagedRun(session, call, work, patience, progress),
        in_(static_cast<std::size_t>(size_)),
        out_(static_cast<std::size_t>(size_)) {}

  StagedProgress run(const StagedProgress& before) {
    for (std::uint32_t i = 0; i <= chunks_.total; ++i) {
      if (i < chunks_.total) produce(i);
      if (i > 0) consume(i - 1);
    }
    return slots_.after(before, chunks_.total);
  }

 private:
  void produce(std::uint32_t i) {
    // Who read what was here before must be done. In a call's first round it is: all ranks have met
    // since.
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      session_.waiter().await(session_.segment().rank(r).consumed, first_ + i + 1 - slots_.count(),
                              watch_.on(r));
    }
    std::byte* slot = slots_.stage(rank_, i);
    work_.timed(i, [&] {
      for (std::size_t b = 0; b < inBlocks(call_.shape, size_, rank_); ++b) {
        if (!isSent(call_.shape, rank_, b)) continue;
        void* const dst[] = {slot + b * chunks_.elements * elementSize_};
        copyMany(dst, call_.in + (b * call_.shape.count + begin(i)) * elementSize_,
                 length(i) * elementSize_, work_.streaming(i));
      }
    });
    publishStaged(i);
  }

  void consume(std::uint32_t i) {
    if (outBlocks(call_.shape, size_, rank_) > 0) {
      for (int r = 0; r < size_; ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (inBlocks(call_.shape, size_, r) == 0) continue;
        if (r == rank_) {
          in_[at] = {call_.in, call_.shape.count, 0};
          continue;
        }
        awaitStaged(r, i);
        in_[at] = {slots_.stage(r, i), chunks_.elements, begin(i)};
      }
      out_[static_cast<std::size_t>(rank_)] = {call_.out, call_.shape.count, 0};
      work_.timed(i, [&] {
        runDirect({call_.shape, in_, out_, call_.weights, streaming_}, begin(i),
                  begin(i) + length(i));
      });
    }
    publishConsumed(i);
  }

  std::vector<InView> in_;
  std::vector<OutView> out_;
};

}  // namespace

StagedChunks::StagedChunks(const Segment& segment, const Shape& shape) {
  for (int r = 0; r < segment.size(); ++r)
    blocks = std::max(blocks, inBlocks(shape, segment.size(), r));
  const std::size_t room = segment.slotBytes() / blocks / sizeOf(shape.dtype);
  elements = std::max<std::size_t>(std::min<std::size_t>(room, shape.count), 1);
  total = static_cast<std::uint32_t>((shape.count + elements - 1) / elements);
}

StagedRun::StagedRun(Session& session, const StagedCall& call, StagingWork& work,
                     Patience& patience, const StagedProgress& progress)
    : session_(session),
      call_(call),
      work_(work),
      watch_(session, nameOf(call.shape.kind), patience),
      first_(progress.chunks),
      rank_(session.rank()),
      size_(session.size()),
      elementSize_(sizeOf(call.shape.dtype)),
      chunks_(session.segment(), call.shape),
      slots_(session.segment(), chunks_.blocks * chunks_.elements * elementSize_, progress),
      streaming_(call.in != call.out && wantsStreaming(call.shape, size_)) {}

RingSlots::RingSlots(const Segment& segment, std::size_t bytes, const StagedProgress& progress)
    : segment_(segment) {
  // Whole lines for each rank's part.
  const std::size_t unit = kLine * static_cast<std::size_t>(segment.size());
  bytes_ = std::min((bytes + unit - 1) / unit * unit, segment.slotBytes());
  count_ = static_cast<std::uint32_t>(segment.stageBytes() / bytes_);
  first_ = static_cast<std::uint32_t>((progress.place + bytes_ - 1) / bytes_ % count_);
}

StagedProgress RingSlots::after(const StagedProgress& before, std::uint32_t chunks) const {
  return {before.chunks + chunks, place(chunks), before.warm || first_ + chunks >= count_};
}

void runStaged(Session& session, const StagedCall& call, StagingWork& work, Patience& patience,
               StagedProgress& progress) {
  progress = Pipeline(session, call, work, patience, progress).run(progress);
}

}  // namespace gradlink::shm
