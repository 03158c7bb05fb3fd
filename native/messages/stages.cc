#include "messages/stages.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernels/identity.h"
#include "core/kernels/reduce_kernels.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

/// Concurrent stages: one arrives, another is reduced, a third is sent.
constexpr std::size_t kStagesAtOnce = 4;
/// The inputs of a stage together: they stay in the second-level cache until they are reduced.
constexpr std::size_t kStageBytes = 256 << 10;
constexpr std::size_t kFewestStageBytes = 16 << 10;
/// Two ranks swap whole arrays up to this size: one trip is faster than two with half the sum.
constexpr std::size_t kMostSwapped = 1 << 20;
constexpr std::size_t kLine = 64;

std::size_t roundUp(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Elements begin..end of rank `part`'s share of `count`.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t length() const { return end - begin; }
};
Range shareOf(std::size_t count, int part, int parts, std::size_t elementSize) {
  const std::size_t each =
      roundUp((count + static_cast<std::size_t>(parts) - 1) / static_cast<std::size_t>(parts),
              kLine / elementSize);
  const std::size_t begin = std::min(count, each * static_cast<std::size_t>(part));
  return {begin, std::min(count, begin + each)};
}

/// Visits all other ranks, starting at a different one on each rank to spread the load.
template <class Body>
void forOthers(const Link& link, Body body) {
  for (int i = 1; i < link.size(); ++i) body((link.rank() + i) % link.size());
}

class Reduction {
 public:
  Reduction(Link& link, const StagedCall& call, Scratch& scratch)
      : link_(link),
        call_(call),
        size_(link.size()),
        elementSize_(sizeOf(call.shape.dtype)),
        src_(static_cast<std::size_t>(size_)) {
    const auto peers = static_cast<std::size_t>(std::max(1, size_ - 1));
    step_ = roundUp(std::max(kStageBytes / peers, kFewestStageBytes), kLine) / elementSize_;
    std::size_t longest = 0;
    for (int p = 0; p < size_; ++p) longest = std::max(longest, part(p).length());
    step_ = std::max<std::size_t>(1, std::min(step_, longest));
    stages_ = (longest + step_ - 1) / step_;
    slotBytes_ = roundUp(step_ * elementSize_, kLine);
    // For each stage: the peers' inputs and, if they go nowhere else, the results.
    slots_ = peers + (isScan(call.shape.kind) ? peers : 1);
    memory_ = scratch.take(kStagesAtOnce * slots_ * slotBytes_);
  }

  void run(Wait& wait) {
    std::size_t next = 0;
    while (next < stages_ || !active_.empty()) {
      if (next < stages_ && active_.size() < kStagesAtOnce) begin(next++);
      bool moved = false;
      for (auto& stage : active_) moved = advance(*stage) || moved;
      while (!active_.empty() && active_.front()->state == State::over) active_.pop_front();
      if (moved) {
        wait.came();
      } else {
        wait.pause();
      }
    }
  }

 private:
  enum class State { incoming, outgoing, results, over };
  struct Stage {
    Stage(Link& link, std::size_t number) : number(number), inputs(link), results(link) {}
    std::size_t number;
    State state = State::incoming;
    Batch inputs;
    Batch results;
  };

  bool isScatter() const { return call_.shape.kind == Kind::reduceScatter; }
  /// In `in`, and except in a reduceScatter in `out`.
  Range part(int rank) const {
    if (!isScatter()) return shareOf(call_.shape.count, rank, size_, elementSize_);
    const auto at = static_cast<std::size_t>(rank);
    return {at * call_.shape.count, (at + 1) * call_.shape.count};
  }
  Range piece(int rank, std::size_t stage) const {
    const Range whole = part(rank);
    const std::size_t begin = std::min(whole.end, whole.begin + stage * step_);
    return {begin, std::min(whole.end, begin + step_)};
  }
  std::byte* slot(std::size_t stage, int index) const {
    return memory_ +
           (stage % kStagesAtOnce * slots_ + static_cast<std::size_t>(index)) * slotBytes_;
  }
  std::size_t bytes(const Range& range) const { return range.length() * elementSize_; }
  const std::byte* in(const Range& range) const { return call_.in + range.begin * elementSize_; }
  std::byte* out(const Range& range) const { return call_.out + range.begin * elementSize_; }

  void begin(std::size_t number) {
    active_.push_back(std::make_unique<Stage>(link_, number));
    Stage& stage = *active_.back();
    const int tag = kPartsTag + static_cast<int>(number % kStageTags);
    const Range own = piece(link_.rank(), number);
    int slotNumber = 0;
    forOthers(link_, [&](int peer) {
      stage.inputs.receive(slot(number, slotNumber++), bytes(own), peer, tag);
    });
    forOthers(link_, [&](int peer) {
      const Range theirs = piece(peer, number);
      stage.inputs.send(in(theirs), bytes(theirs), peer, tag);
    });
  }

  bool advance(Stage& stage) {
    const State before = stage.state;
    if (stage.state == State::incoming && !stage.inputs.receiving()) {
      reduce(stage);
      stage.state = State::outgoing;
    }
    // In place, results overwrite data being sent.
    if (stage.state == State::outgoing && !stage.inputs.sending()) {
      receiveResults(stage);
      stage.state = State::results;
    }
    if (stage.state == State::results && stage.results.progress()) stage.state = State::over;
    return stage.state != before;
  }

  void reduce(Stage& stage) {
    const Range own = piece(link_.rank(), stage.number);
    if (own.length() == 0) return;
    int slotNumber = 0;
    src_[static_cast<std::size_t>(link_.rank())] = in(own);
    forOthers(link_, [&](int peer) {
      src_[static_cast<std::size_t>(peer)] = slot(stage.number, slotNumber++);
    });
    if (isScan(call_.shape.kind)) return scan(stage, own);
    std::byte* to = slot(stage.number, std::max(1, size_ - 1));
    if (isScatter()) {
      to = call_.out + stage.number * step_ * elementSize_;
    } else if (call_.out != nullptr) {
      to = out(own);
    }
    void* const dst[] = {to};
    reduceMany(dst, src_, own.length(), call_.shape.dtype, call_.shape.op);
    const int tag = kResultsTag + static_cast<int>(stage.number % kStageTags);
    if (call_.shape.kind == Kind::allReduce) {
      forOthers(link_, [&](int peer) { stage.results.send(to, bytes(own), peer, tag); });
    } else if (call_.shape.kind == Kind::reduce && link_.rank() != call_.shape.root) {
      stage.results.send(to, bytes(own), call_.shape.root, tag);
    }
  }

  /// Computes every rank's result of the own part; they differ.
  void scan(Stage& stage, const Range& own) {
    const int tag = kResultsTag + static_cast<int>(stage.number % kStageTags);
    int slotNumber = std::max(1, size_ - 1);
    forOthers(link_, [&](int peer) {
      std::byte* const to = slot(stage.number, slotNumber++);
      if (scannedRanks(call_.shape.kind, peer) == 0) return;
      reduceFor(peer, to, own);
      stage.results.send(to, bytes(own), peer, tag);
    });
    // Last: in place it overwrites the inputs of the others' results.
    reduceFor(link_.rank(), out(own), own);
  }
  void reduceFor(int rank, std::byte* to, const Range& range) {
    const Shape& shape = call_.shape;
    const std::size_t ranks = scannedRanks(shape.kind, rank);
    if (ranks == 0) return fillIdentity(to, range.length(), shape.dtype, shape.op);
    void* const dst[] = {to};
    reduceMany(dst, std::span(src_).first(ranks), range.length(), shape.dtype, shape.op);
  }

  void receiveResults(Stage& stage) {
    const bool wanted = call_.shape.kind == Kind::allReduce || isScan(call_.shape.kind) ||
                        (call_.shape.kind == Kind::reduce && link_.rank() == call_.shape.root);
    if (!wanted) return;
    const int tag = kResultsTag + static_cast<int>(stage.number % kStageTags);
    forOthers(link_, [&](int peer) {
      const Range theirs = piece(peer, stage.number);
      // The identity needs no computation.
      if (isScan(call_.shape.kind) && scannedRanks(call_.shape.kind, link_.rank()) == 0) {
        return reduceFor(link_.rank(), out(theirs), theirs);
      }
      stage.results.receive(out(theirs), bytes(theirs), peer, tag);
    });
  }

  Link& link_;
  const StagedCall& call_;
  const int size_;
  const std::size_t elementSize_;
  std::size_t step_ = 0;
  std::size_t stages_ = 0;
  std::size_t slots_ = 0;
  std::size_t slotBytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<const void*> src_;
  std::deque<std::unique_ptr<Stage>> active_;
};

void swapAndReduce(Link& link, const StagedCall& call, Scratch& scratch, Wait& wait) {
  const std::size_t bytes = call.shape.count * sizeOf(call.shape.dtype);
  std::byte* const theirs = scratch.take(bytes);
  const int peer = 1 - link.rank();
  Batch batch(link);
  batch.receive(theirs, bytes, peer, kPartsTag);
  batch.send(call.in, bytes, peer, kPartsTag);
  // In place, the sum overwrites data being sent.
  batch.wait(wait.on(peer));
  const void* src[] = {call.in, theirs};
  if (link.rank() == 1) std::swap(src[0], src[1]);
  void* const dst[] = {call.out};
  reduceMany(dst, src, call.shape.count, call.shape.dtype, call.shape.op);
}

}  // namespace

void runReduction(Link& link, const StagedCall& call, Scratch& scratch, Wait& wait) {
  if (link.size() == 2 && call.shape.kind == Kind::allReduce &&
      call.shape.count * sizeOf(call.shape.dtype) <= kMostSwapped) {
    return swapAndReduce(link, call, scratch, wait);
  }
  StagedCall own = call;
  if (call.shape.kind == Kind::reduce && link.rank() != call.shape.root) own.out = nullptr;
  Reduction(link, own, scratch).run(wait);
}

}  // namespace gradlink::messages
