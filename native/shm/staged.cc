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

class Pipeline {
 public:
  Pipeline(Session& session, const StagedCall& call, Deadline deadline, ChunkCount first)
      : session_(session),
        call_(call),
        watch_(session, nameOf(call.shape.kind), deadline),
        first_(first),
        rank_(session.rank()),
        size_(session.size()),
        elementSize_(sizeOf(call.shape.dtype)),
        in_(static_cast<std::size_t>(size_)),
        out_(static_cast<std::size_t>(size_)) {
    std::size_t blocks = 1;
    for (int r = 0; r < size_; ++r) blocks = std::max(blocks, inBlocks(call.shape, size_, r));
    chunk_ = std::max<std::size_t>(session.segment().slotBytes() / blocks / elementSize_, 1);
    streaming_ = call.in != call.out && wantsStreaming(call.shape, size_);
  }

  ChunkCount run() {
    const auto total = static_cast<ChunkCount>((call_.shape.count + chunk_ - 1) / chunk_);
    for (ChunkCount i = 0; i <= total; ++i) {
      if (i < total) produce(i);
      if (i > 0) consume(i - 1);
    }
    return first_ + total;
  }

 private:
  std::size_t begin(ChunkCount i) const { return i * chunk_; }
  std::size_t end(ChunkCount i) const {
    return std::min<std::size_t>(begin(i) + chunk_, call_.shape.count);
  }

  void produce(ChunkCount i) {
    const ChunkCount number = first_ + i;
    // The slot was last used kSlots chunks ago, perhaps by another call with other readers.
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      session_.waiter().await(session_.segment().rank(r).consumed, number + 1 - Segment::kSlots,
                              watch_.on(r));
    }
    std::byte* slot = session_.segment().stage(rank_, number);
    for (std::size_t b = 0; b < inBlocks(call_.shape, size_, rank_); ++b) {
      if (!isSent(call_.shape, rank_, b)) continue;
      void* const dst[] = {slot + b * chunk_ * elementSize_};
      copyMany(dst, call_.in + (b * call_.shape.count + begin(i)) * elementSize_,
               (end(i) - begin(i)) * elementSize_);
    }
    session_.waiter().publish(session_.own().staged, number + 1);
  }

  void consume(ChunkCount i) {
    const ChunkCount number = first_ + i;
    if (outBlocks(call_.shape, size_, rank_) > 0) {
      for (int r = 0; r < size_; ++r) {
        const auto at = static_cast<std::size_t>(r);
        if (inBlocks(call_.shape, size_, r) == 0) continue;
        if (r == rank_) {
          in_[at] = {call_.in, call_.shape.count, 0};
          continue;
        }
        session_.waiter().await(session_.segment().rank(r).staged, number + 1, watch_.on(r));
        in_[at] = {session_.segment().stage(r, number), chunk_, begin(i)};
      }
      out_[static_cast<std::size_t>(rank_)] = {call_.out, call_.shape.count, 0};
      runDirect({call_.shape, in_, out_, call_.weights, streaming_}, begin(i), end(i));
    }
    session_.waiter().publish(session_.own().consumed, number + 1);
  }

  Session& session_;
  const StagedCall& call_;
  CallWatch watch_;
  ChunkCount first_;
  int rank_;
  int size_;
  std::size_t elementSize_;
  std::size_t chunk_;
  bool streaming_;
  std::vector<InView> in_;
  std::vector<OutView> out_;
};

}  // namespace

void runStaged(Session& session, const StagedCall& call, Deadline deadline, ChunkCount& chunks) {
  chunks = Pipeline(session, call, deadline, chunks).run();
}

}  // namespace gradlink::shm
