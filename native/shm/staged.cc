#include "shm/staged.h"

#include <algorithm>
#include <optional>
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

class Pipeline {
 public:
  Pipeline(Session& session, const StagedCall& call, Patience& patience,
           const StagedProgress& progress)
      : session_(session),
        call_(call),
        watch_(session, nameOf(call.shape.kind), patience),
        first_(progress.chunks),
        rank_(session.rank()),
        size_(session.size()),
        elementSize_(sizeOf(call.shape.dtype)),
        in_(static_cast<std::size_t>(size_)),
        out_(static_cast<std::size_t>(size_)) {
    std::size_t blocks = 1;
    for (int r = 0; r < size_; ++r) blocks = std::max(blocks, inBlocks(call.shape, size_, r));
    const std::size_t room = session.segment().slotBytes() / blocks / elementSize_;
    chunk_ = std::max<std::size_t>(std::min<std::size_t>(room, call.shape.count), 1);
    slots_.emplace(session.segment(), blocks * chunk_ * elementSize_, progress);
    streaming_ = call.in != call.out && wantsStreaming(call.shape, size_);
  }

  StagedProgress run(const StagedProgress& before) {
    const auto total = static_cast<std::uint32_t>((call_.shape.count + chunk_ - 1) / chunk_);
    for (std::uint32_t i = 0; i <= total; ++i) {
      if (i < total) produce(i);
      if (i > 0) consume(i - 1);
    }
    return slots_->after(before, total);
  }

 private:
  std::size_t begin(std::uint32_t i) const { return i * chunk_; }
  std::size_t end(std::uint32_t i) const {
    return std::min<std::size_t>(begin(i) + chunk_, call_.shape.count);
  }

  void produce(std::uint32_t i) {
    const std::uint32_t number = first_ + i;
    // Who read what was here before must be done. In a call's first round it is: all ranks have met
    // since.
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      session_.waiter().await(session_.segment().rank(r).consumed, number + 1 - slots_->count(),
                              watch_.on(r));
    }
    std::byte* slot = slots_->stage(rank_, i);
    for (std::size_t b = 0; b < inBlocks(call_.shape, size_, rank_); ++b) {
      if (!isSent(call_.shape, rank_, b)) continue;
      void* const dst[] = {slot + b * chunk_ * elementSize_};
      copyMany(dst, call_.in + (b * call_.shape.count + begin(i)) * elementSize_,
               (end(i) - begin(i)) * elementSize_);
    }
    session_.waiter().publish(session_.own().staged, number + 1);
  }

  void consume(std::uint32_t i) {
    const std::uint32_t number = first_ + i;
    if (outBlocks(call_.shape, size_, rank_) > 0) {
      for (int r = 0; r < size_; ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (inBlocks(call_.shape, size_, r) == 0) continue;
        if (r == rank_) {
          in_[at] = {call_.in, call_.shape.count, 0};
          continue;
        }
        session_.waiter().await(session_.segment().rank(r).staged, number + 1, watch_.on(r));
        in_[at] = {slots_->stage(r, i), chunk_, begin(i)};
      }
      out_[static_cast<std::size_t>(rank_)] = {call_.out, call_.shape.count, 0};
      runDirect({call_.shape, in_, out_, call_.weights, streaming_}, begin(i), end(i));
    }
    session_.waiter().publish(session_.own().consumed, number + 1);
  }

  Session& session_;
  const StagedCall& call_;
  CallWatch watch_;
  std::uint32_t first_;
  int rank_;
  int size_;
  std::size_t elementSize_;
  std::size_t chunk_;
  std::optional<RingSlots> slots_;
  bool streaming_;
  std::vector<InView> in_;
  std::vector<OutView> out_;
};

}  // namespace

RingSlots::RingSlots(const Segment& segment, std::size_t bytes, const StagedProgress& progress)
    : segment_(segment) {
  // Whole lines for each rank's part.
  const std::size_t unit = kLine * static_cast<std::size_t>(segment.size());
  bytes_ = std::min((bytes + unit - 1) / unit * unit, segment.slotBytes());
  count_ = static_cast<std::uint32_t>(segment.stageBytes() / bytes_);
  first_ = static_cast<std::uint32_t>((progress.place + bytes_ - 1) / bytes_ % count_);
}

StagedProgress RingSlots::after(const StagedProgress& before, std::uint32_t chunks) const {
  return {before.chunks + chunks, place(chunks)};
}

void runStaged(Session& session, const StagedCall& call, Patience& patience,
               StagedProgress& progress) {
  progress = Pipeline(session, call, patience, progress).run(progress);
}

}  // namespace gradlink::shm
