// All ranks in one communicator: the caller has all buffers, so a call is one pass over memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "core/call.h"
#include "core/communicator.h"
#include "core/direct.h"
#include "core/error.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/free_memory.h"
#include "core/thread_pool.h"
#include "shm/shm.h"

namespace gradlink::shm {
namespace {

// Below this many bytes a rank, waking a pool thread (some microseconds) costs more than it saves.
constexpr std::size_t kInlineBytes = 64 << 10;
// Bytes of a part over all ranks: small for load balance, large enough for hardware prefetch.
constexpr std::size_t kPartBytes = 1 << 20;

class LocalGroup final : public Communicator {
 public:
  explicit LocalGroup(int size) : ranks_(static_cast<std::size_t>(size)) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
  }

  int size() const override { return static_cast<int>(ranks_.size()); }
  std::span<const int> heldRanks() const override { return ranks_; }
  const char* backend() const override { return "shm"; }

  void run(const Call& call) override {
    const Kind kind = call.shape.kind;
    checkOpen(call.op());
    if (kind == Kind::barrier) return;
    if (isPlain(kind)) return combine(call.shape, call.buffers, {});
    if (isCounted(kind)) return compose(call);
    if (kind != Kind::neighborAllReduce) throw onlyOneRank(call.op());
    if (call.neighborhoods.size() != ranks_.size()) {
      throw misuse(call.op(), "expected " + std::to_string(ranks_.size()) +
                                  " neighborhoods, one a rank, got " +
                                  std::to_string(call.neighborhoods.size()));
    }
    combine(call.shape, call.buffers, resolveNeighbors(call.neighborhoods));
  }

  std::unique_ptr<Communicator> split(int, int, const CallOptions&) override {
    throw onlyOneRank("split");
  }

  void* allocShared(std::size_t bytes) override {
    checkOpen("allocShared");
    requireMemory("allocShared", bytes);
    // With 4 KiB pages, TLB misses of four streams cost a quarter more time (64 MiB, EPYC Zen 5).
    try {
      AlignedBuffer made(std::max<std::size_t>(bytes, 1));
      void* const memory = made.data();
      std::lock_guard lock(mutex_);
      memory_[memory] = std::move(made);
      return memory;
    } catch (const Error& error) {
      throw harmless(error.code, "allocShared", error.what());
    }
  }
  void freeShared(void* memory) override {
    std::lock_guard lock(mutex_);
    memory_.erase(memory);
  }

  void abort(const std::string& reason) override {
    std::lock_guard lock(mutex_);
    if (state_ != State::open) return;
    reason_ = reason;
    state_ = State::aborted;
  }
  void close() override { state_ = State::closed; }

 private:
  enum class State { open, aborted, closed };

  void checkOpen(const char* op) {
    if (state_.load(std::memory_order_acquire) == State::open) return;
    std::lock_guard lock(mutex_);
    if (state_ == State::aborted) {
      throw Error(ErrorCode::aborted,
                  std::string(op) + ": the communicator was aborted: " + reason_)
          .withOp(op);
    }
    throw Error(ErrorCode::closed, std::string(op) + ": the communicator is closed").withOp(op);
  }

  Error onlyOneRank(const char* op) const {
    return unsupported(op, "this communicator holds all " + std::to_string(size()) +
                               " ranks at once; use those of its openRanks(), which hold one each");
  }

  void combine(const Shape& shape, const Buffers& buffers, std::span<const WeightRow> weights) {
    const std::size_t n = ranks_.size();
    checkShape(shape, size());
    if (buffers.in.size() != n || buffers.out.size() != n) {
      throw misuse(nameOf(shape.kind), "expected " + std::to_string(n) +
                                           " inputs and outputs, one a rank, got " +
                                           std::to_string(buffers.in.size()) + " and " +
                                           std::to_string(buffers.out.size()));
    }
    // Views of up to this many ranks live on the stack: an 8-byte call allocates nothing.
    constexpr std::size_t kFew = 16;
    InView fewIn[kFew];
    OutView fewOut[kFew];
    std::vector<InView> manyIn(n > kFew ? n : 0);
    std::vector<OutView> manyOut(n > kFew ? n : 0);
    InView* in = n > kFew ? manyIn.data() : fewIn;
    OutView* out = n > kFew ? manyOut.data() : fewOut;
    bool inPlace = true;
    for (std::size_t r = 0; r < n; ++r) {
      const int rank = ranks_[r];
      inPlace = inPlace && buffers.in[r] == buffers.out[r];
      checkPointers(shape, size(), rank, buffers.in[r], buffers.out[r]);
      if (inBlocks(shape, size(), rank) > 0) {
        in[r] = {static_cast<const std::byte*>(buffers.in[r]), shape.count, 0};
      }
      if (outBlocks(shape, size(), rank) > 0) {
        out[r] = {static_cast<std::byte*>(buffers.out[r]), shape.count, 0};
      }
    }
    if (shape.count == 0) return;
    const DirectCall call{shape, {in, n}, {out, n}, weights, resultStores(shape, size(), inPlace)};
    const std::size_t part = partElements(shape, size(), kPartBytes);
    if (shape.count * sizeOf(shape.dtype) < kInlineBytes) {
      runDirect(call, 0, shape.count);
      return;
    }
    const std::size_t parts = (shape.count + part - 1) / part;
    ThreadPool::shared().parallel(parts, [&](std::size_t i) {
      runDirect(call, i * part, std::min(shape.count, (i + 1) * part));
    });
  }

  std::vector<int> ranks_;
  std::mutex mutex_;  // guards memory_ and reason_: any thread allocates and aborts
  std::map<void*, AlignedBuffer> memory_;
  std::string reason_;
  std::atomic<State> state_{State::open};
};

}  // namespace

std::unique_ptr<Communicator> makeLocalGroup(int size) {
  if (size < 1) {
    throw Error(ErrorCode::invalidArgument,
                "a local group needs at least 1 rank, got " + std::to_string(size))
        .stillUsable();
  }
  return std::make_unique<LocalGroup>(size);
}

}  // namespace gradlink::shm
