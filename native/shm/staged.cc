#include "shm/staged.h"

#include <algorithm>
#include <vector>

#include "core/direct.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink::shm {
namespace {

// Whether other ranks need a rank's block of input.
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

/// Each rank stages the part of its input that others read, and computes from what they staged. It
/// waits only for its own sources and readers. While a source is late it stages ahead as far as the
/// ring allows: with shared cores each wait costs a context switch.
class ChunkPipeline : StagedRun {
 public:
  ChunkPipeline(Session& session, const StagedCall& call, StagingWork& work,
                CallTimeout& callTimeout, const StagedProgress& progress, Way way, std::size_t from,
                std::size_t to)
      : StagedRun(session, call, work, callTimeout, progress, way, from, to),
        in_(static_cast<std::size_t>(size_)),
        out_(static_cast<std::size_t>(size_)) {
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      if (reads(rank_, r)) sources_.push_back(r);
      if (reads(r, rank_)) readers_.push_back(r);
    }
  }

  StagedProgress run(const StagedProgress& before, bool meet) {
    std::uint32_t staged = 0;
    for (std::uint32_t next = 0; next < chunks_.total;) {
      // A rank that waits for sources has staged that chunk, so the first awaited one is always
      // there.
      if (staged == next || (staged < chunks_.total && !isStaged(next) && hasRoom(staged))) {
        produce(staged++);
      } else {
        consume(next++);
      }
    }
    return finish(before, meet);
  }

 private:
  /// Whether rank `reader` needs what `source` stages.
  bool reads(int reader, int source) const {
    const Shape& shape = call_.shape;
    if (inBlocks(shape, size_, source) == 0 || outBlocks(shape, size_, reader) == 0) return false;
    if (shape.kind != Kind::neighborAllReduce) return true;
    return call_.weights[static_cast<std::size_t>(reader)].reads(source);
  }

  bool isStaged(std::uint32_t i) const {
    return std::all_of(sources_.begin(), sources_.end(), [&](int r) {
      return reached(session_.segment().rank(r).staged.value.load(std::memory_order_acquire),
                     first_ + i + 1);
    });
  }
  // The slot's previous content must have been read. In the first round it has: all ranks have met.
  std::uint32_t readBefore(std::uint32_t i) const { return first_ + i + 1 - slots_.count(); }
  bool hasRoom(std::uint32_t i) const {
    return std::all_of(readers_.begin(), readers_.end(), [&](int r) {
      return reached(session_.segment().rank(r).consumed.value.load(std::memory_order_acquire),
                     readBefore(i));
    });
  }

  void produce(std::uint32_t i) {
    for (const int r : readers_) {
      session_.waiter().await(session_.segment().rank(r).consumed, readBefore(i), watch_.on(r));
    }
    std::byte* slot = slots_.stage(rank_, i);
    timed([&] {
      for (std::size_t b = 0; !readers_.empty() && b < inBlocks(call_.shape, size_, rank_); ++b) {
        if (!isSent(call_.shape, rank_, b)) continue;
        void* const dst[] = {slot + b * chunks_.elements * elementSize_};
        copyMany(dst, call_.in + (b * call_.shape.count + chunks_.begin(i)) * elementSize_,
                 chunks_.length(i) * elementSize_, stagesPast_);
      }
    });
    publishStaged(i);
  }

  void consume(std::uint32_t i) {
    if (outBlocks(call_.shape, size_, rank_) > 0) {
      const auto own = static_cast<std::size_t>(rank_);
      if (inBlocks(call_.shape, size_, rank_) > 0) in_[own] = {call_.in, call_.shape.count, 0};
      for (const int r : sources_) {
        awaitStaged(r, i);
        in_[static_cast<std::size_t>(r)] = {slots_.stage(r, i), chunks_.elements, chunks_.begin(i)};
      }
      out_[own] = {call_.out, call_.shape.count, 0};
      timed([&] {
        runDirect({call_.shape, in_, out_, call_.weights, results_}, chunks_.begin(i),
                  chunks_.begin(i) + chunks_.length(i));
      });
    }
    publishConsumed(i);
  }

  std::vector<int> sources_;
  std::vector<int> readers_;
  std::vector<InView> in_;
  std::vector<OutView> out_;
};

// Slots filled with a rank's blocks while another way is tried.
constexpr std::size_t kProbedSlots = 8;
constexpr std::uint32_t kShallowPlaces = 4;
constexpr std::size_t kMostShallowBytes = 128 << 10;
constexpr std::uint32_t kWholePlaces = 16;

std::size_t blocksOf(const Segment& segment, const Shape& shape) {
  std::size_t blocks = 1;
  for (int r = 0; r < segment.size(); ++r)
    blocks = std::max(blocks, inBlocks(shape, segment.size(), r));
  return blocks;
}

// With few slots, chunks should stay in a core's second-level cache, which ranks may share.
std::size_t chunkBytes(const Segment& segment, int way) {
  const std::size_t cache = segment.header().secondCacheBytes;
  if (way == kShallow)
    return std::min({segment.slotBytes(), cache / kShallowPlaces, kMostShallowBytes});
  if (way == kWhole) return std::min(segment.slotBytes(), cache / kWholePlaces);
  return segment.slotBytes();
}

}  // namespace

StagedChunks::StagedChunks(const Segment& segment, const Shape& shape, Way way, std::size_t theFrom,
                           std::size_t theTo)
    : from(theFrom), to(theTo), blocks(blocksOf(segment, shape)) {
  const std::size_t room = chunkBytes(segment, way) / blocks / sizeOf(shape.dtype);
  elements = std::max<std::size_t>(std::min<std::size_t>(room, to - from), 1);
  total = static_cast<std::uint32_t>((to - from + elements - 1) / elements);
}

int waysOf(const Segment& segment, const Shape& shape) {
  if (kShallowPlaces * chunkBytes(segment, kShallow) >= segment.stageBytes()) return kShallow;
  return shape.kind == Kind::allReduce && segment.size() == 2 ? kWhole + 1 : kWhole;
}

std::size_t probedElements(const Segment& segment, const Shape& shape) {
  const std::size_t most =
      kProbedSlots * segment.slotBytes() / blocksOf(segment, shape) / sizeOf(shape.dtype);
  return std::min<std::size_t>(std::max<std::size_t>(most, 1), shape.count);
}

StagedRun::StagedRun(Session& session, const StagedCall& call, StagingWork& work,
                     CallTimeout& callTimeout, const StagedProgress& progress, Way way,
                     std::size_t from, std::size_t to)
    : session_(session),
      call_(call),
      work_(work),
      watch_(session, nameOf(call.shape.kind), callTimeout),
      way_(way),
      first_(progress.chunks),
      rank_(session.rank()),
      size_(session.size()),
      elementSize_(sizeOf(call.shape.dtype)),
      chunks_(session.segment(), call.shape, way, from, to),
      slots_(session.segment(), way, chunks_.blocks * chunks_.elements * elementSize_, progress),
      stagesPast_(way == kStreaming),
      results_(resultStores(call.shape, size_, call.in == call.out)) {}

StagedProgress StagedRun::finish(const StagedProgress& before, bool meet) {
  if (!meet) return slots_.after(before, chunks_.total);
  publishStaged(chunks_.total);
  publishConsumed(chunks_.total);
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) awaitConsumed(r, chunks_.total);
  }
  StagedProgress after = slots_.after(before, chunks_.total);
  ++after.chunks;
  return after;
}

RingSlots::RingSlots(const Segment& segment, Way way, std::size_t bytes,
                     const StagedProgress& progress)
    : segment_(segment), way_(way) {
  // Whole lines for each rank's part.
  const std::size_t unit = kLine * static_cast<std::size_t>(segment.size());
  bytes_ = std::min((bytes + unit - 1) / unit * unit, segment.slotBytes());
  count_ = static_cast<std::uint32_t>(segment.stageBytes() / bytes_);
  if (way == kShallow) count_ = std::min(count_, kShallowPlaces);
  if (way == kWhole) count_ = std::min(count_, kWholePlaces);
  first_ = static_cast<std::uint32_t>((progress.place[way] + bytes_ - 1) / bytes_ % count_);
}

StagedProgress RingSlots::after(const StagedProgress& before, std::uint32_t chunks) const {
  StagedProgress after = before;
  after.chunks += chunks;
  after.place[way_] = place(chunks);
  after.warm = before.warm || (way_ == kDeep && first_ + chunks >= count_);
  return after;
}

void runStaged(Session& session, const StagedCall& call, StagingWork& work,
               CallTimeout& callTimeout, StagedProgress& progress) {
  const auto run = [&](Way way, std::size_t from, std::size_t to) {
    const bool meet = to < call.shape.count;
    progress =
        call.shape.kind == Kind::allReduce
            ? runStagedAllReduce(session, call, work, callTimeout, progress, way, from, to, meet)
            : ChunkPipeline(session, call, work, callTimeout, progress, way, from, to)
                  .run(progress, meet);
  };
  const std::size_t probed = work.probing() ? probedElements(session.segment(), call.shape) : 0;
  if (probed > 0) run(work.first(), 0, probed);
  if (probed < call.shape.count) run(work.rest(), probed, call.shape.count);
}

}  // namespace gradlink::shm
