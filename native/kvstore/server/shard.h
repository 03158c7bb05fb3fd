// One shard on its server: its value, open rounds and pending answers. Used by one pipeline.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/deadline.h"
#include "core/memory/aligned_buffer.h"
#include "kvstore/protocol/piece_rows.h"
#include "kvstore/server/context.h"
#include "kvstore/server/merge.h"
#include "kvstore/server/step_note.h"

namespace gradlink::dist {

class ServerShard {
 public:
  using Clock = Deadline::Clock;

  /// `value`: zeroed memory of the wire, of `count` elements.
  ServerShard(ServerContext& context, Merger& merger, const Header& definition, std::string name,
              void* value);

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  std::size_t count() const { return count_; }
  std::size_t rowLength() const { return rowLength_; }
  std::uint32_t traceKey() const { return traceKey_; }
  /// Whether another worker's definition is the same.
  bool agreesWith(const Header& definition, const std::string& name) const;

  /// Pieces are done when these return, or wait inside. Throw Error(mismatch) for a piece that does
  /// not fit the shard, which ends the store.
  void init(const Header&, const WireMessage&);
  void push(const Header&, const WireMessage&);
  void pull(const Header&, int worker);
  void pullRows(const Header&, const WireMessage&);
  /// Looks again at a piece whose value is no longer read, or after a worker has left.
  void advance(std::size_t piece);
  void advanceAll();
  /// Called rarely: copies and releases pushes that wait for long, throws for those too late.
  void tick(Clock::time_point now, double timeoutMs);

  /// A reader of the value is done; whether to call advance(). On the receiving thread.
  bool valueRead(std::size_t piece);

  // ---- while the pipeline is idle
  const OptimizerState* state() const { return state_.get(); }
  /// Null: a fresh one on demand. Steps in progress end with the old one.
  void setState(std::shared_ptr<OptimizerState> state) { state_ = std::move(state); }
  /// Drops the steps that a lost worker began.
  void forget(int worker);

 private:
  struct HeldPush {
    Header header;
    int worker;
    const void* data;
    std::size_t bytes;
    /// 0 once copied.
    std::uint64_t token;
    AlignedBuffer copy;
  };
  struct Waiting {
    int worker;
    std::uint64_t request;
    std::uint64_t round;
    /// Requested elements; empty: all.
    std::vector<ElementRun> runs;
  };
  struct ShardPiece {
    bool ready = false;
    std::uint64_t closed = 0;
    /// Asynchronous stores: applied pushes by worker.
    std::vector<std::uint64_t> applied;
    std::vector<HeldPush> held;
    std::vector<Waiting> pulls;
    /// Readers of the value in place.
    std::atomic<int> readers{0};
    std::atomic<bool> blocked{false};
    /// When tick() first saw it wait, and for which round.
    Clock::time_point since;
    std::uint64_t sinceRound = 0;
  };
  /// An optimizer step with some pieces done.
  struct Step {
    int worker;
    std::uint64_t round;
    std::shared_ptr<Optimizer> optimizer;
    std::shared_ptr<OptimizerState> state;
    std::unique_ptr<UpdateRun> run;
    std::size_t piecesLeft;
  };
  /// The pushes of the next change of a piece: indexes into `held`, in worker order.
  using Batch = std::vector<std::size_t>;

  std::size_t firstOf(std::size_t piece) const { return piece * step_; }
  std::size_t countOf(std::size_t piece) const { return std::min(step_, count_ - firstOf(piece)); }
  std::byte* valueOf(std::size_t piece) const { return value_ + firstOf(piece) * sizeOf(dtype_); }
  void check(const Header&, const WireMessage&) const;
  std::size_t wireBytes(const Header&) const;

  bool nextBatch(const ShardPiece& piece, Batch& batch) const;
  bool roundBatch(const ShardPiece& piece, Batch& batch) const;
  bool pushBatch(const ShardPiece& piece, int worker, std::uint64_t round, Batch& batch) const;
  bool isRead(ShardPiece& piece);
  bool closesWith(std::size_t index, std::size_t held);
  void keep(HeldPush& held);
  const std::vector<PushedPiece>& pushedOf(const ShardPiece& piece, const Batch& batch);
  StepNote noteStep(std::span<const Batch> batches, std::size_t firstPiece) const;
  void noteAnswer(ServerTrace& trace, double begin, int worker, std::size_t bytes) const;
  bool needsWhole() const;
  void apply(std::size_t piece, const Batch& batch);
  std::optional<Error> change(std::size_t piece, const Batch& batch);
  bool applyWhole();
  bool applyWhole(int worker, std::uint64_t round);
  void stepWhole(int worker, std::uint64_t round, const std::vector<Batch>& batches);
  std::optional<Error> callUpdater(const std::vector<Batch>& batches);
  Step makeStep(int worker, std::uint64_t round);
  Step* findStep(int worker, std::uint64_t round);
  void finish(std::size_t piece, const Batch& batch, const Error* failure = nullptr);
  void answerPulls(std::size_t piece);
  Header valueHeader(std::size_t piece, std::uint64_t request) const;
  void sendValue(std::size_t piece, int worker, std::uint64_t request);
  void sendRows(std::size_t piece, const Waiting& pull);
  bool hasRightSize(const Header&, const WireMessage&) const;
  [[noreturn]] void tooLate(const ShardPiece& piece, double timeoutMs) const;
  const GradientCompression* compression() const {
    return context_.compression ? &*context_.compression : nullptr;
  }

  ServerContext& context_;
  Merger& merger_;
  const std::uint32_t number_;
  const std::string name_;
  const DType dtype_;
  const std::size_t count_;
  /// Its offset in the key.
  const std::size_t first_;
  const std::size_t rowLength_;
  const std::uint32_t traceKey_;
  const std::uint8_t flags_;
  const std::size_t step_;
  std::byte* const value_;
  std::vector<ShardPiece> pieces_;
  std::shared_ptr<OptimizerState> state_;
  std::vector<Step> steps_;
  std::size_t heldPieces_ = 0;
  Batch batch_;
  std::vector<PushedPiece> pushed_;
  AlignedBuffer received_;
};

}  // namespace gradlink::dist
