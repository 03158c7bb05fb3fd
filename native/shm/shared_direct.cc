#include "shm/shared_direct.h"

#include <sched.h>

#include <algorithm>

namespace gradlink::shm {
namespace {

// Limits of a part's bytes over all ranks. Smaller parts would cost less than their claim (a shared
// line changes owner); larger ones would leave too few for load balance.
constexpr std::size_t kSmallestPart = 32 << 10;
constexpr std::size_t kLargestPart = 1 << 20;
constexpr std::size_t kNone = SIZE_MAX;

std::size_t partOf(const Shape& shape, int size) {
  std::size_t blocks = 0;
  for (int r = 0; r < size; ++r)
    blocks += std::max(inBlocks(shape, size, r), outBlocks(shape, size, r));
  const std::size_t bytes = blocks * shape.count * sizeOf(shape.dtype);
  const std::size_t share = bytes / (2 * static_cast<std::size_t>(size));
  return partElements(shape, size, std::clamp(share, kSmallestPart, kLargestPart));
}

// The counter contains the call's number, so it needs no reset: a rank that finds an older number
// starts the call at part 0, one that finds a newer number is too late for any part.
std::size_t claimFrom(std::atomic<std::uint64_t>& counter, std::uint32_t number,
                      std::size_t parts) {
  std::uint64_t seen = counter.load(std::memory_order_acquire);
  for (;;) {
    const auto call = static_cast<std::uint32_t>(seen >> 32);
    const bool older = call != number && reached(number, call);
    const std::uint64_t part = older ? 0 : seen & 0xffffffffu;
    if ((call != number && !older) || part >= parts) return kNone;
    const std::uint64_t next = (std::uint64_t{number} << 32) | (part + 1);
    if (counter.compare_exchange_weak(seen, next, std::memory_order_acq_rel)) return part;
  }
}

// Each rank first takes the parts of its own range, the same in every call, which may still be
// cached. Then it helps the next rank, so a starved one delays nobody.
std::size_t claim(Session& session, std::uint32_t number, std::size_t parts) {
  const auto size = static_cast<std::size_t>(session.size());
  for (std::size_t step = 0; step < size; ++step) {
    const std::size_t owner = (static_cast<std::size_t>(session.rank()) + step) % size;
    const std::size_t begin = owner * parts / size;
    const std::size_t end = (owner + 1) * parts / size;
    std::atomic<std::uint64_t>& counter = session.segment().rank(static_cast<int>(owner)).claimed;
    const std::size_t i = claimFrom(counter, number, end - begin);
    if (i != kNone) return begin + i;
  }
  return kNone;
}

// Sets "working" before it checks for a failure; a rank that ends the communicator does the
// reverse. So either this rank sees the end, or the other one sees it work and waits (drainPeers).
class Working {
 public:
  explicit Working(Session& session) : flag_(session.own().working) {}
  ~Working() { end(); }
  void begin() { flag_.store(1, std::memory_order_seq_cst); }
  void end() { flag_.store(0, std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint32_t>& flag_;
};

}  // namespace

void drainPeers(Session& session) {
  for (int r = 0; r < session.size(); ++r) {
    if (r == session.rank()) continue;
    const RankBlock& peer = session.segment().rank(r);
    while (peer.working.load(std::memory_order_seq_cst) != 0) {
      if (session.deadPeer() >= 0) break;
      sched_yield();
    }
  }
}

void runSharedDirect(Session& session, const Shape& shape, const std::function<DirectCall()>& views,
                     std::uint32_t number, CallTimeout& callTimeout) {
  SegmentHeader& header = session.segment().header();
  std::size_t part = partOf(shape, session.size());
  part = std::max(part, static_cast<std::size_t>(shape.count >> 30));
  const std::size_t parts = (shape.count + part - 1) / part;
  Working working(session);
  DirectCall call;
  std::size_t mine = 0;
  for (;;) {
    working.begin();
    const std::size_t i = session.ended() ? kNone : claim(session, number, parts);
    if (i == kNone) break;
    if (mine == 0) call = views();
    runDirect(call, i * part, std::min<std::size_t>(shape.count, (i + 1) * part));
    ++mine;
  }
  working.end();
  const bool last =
      mine > 0 && header.completed.fetch_add(mine, std::memory_order_acq_rel) + mine == parts;
  if (last) {
    header.completed.store(0, std::memory_order_relaxed);
    session.waiter().publish(header.finished, number);
    return;
  }
  CallWatch watch(session, nameOf(shape.kind), callTimeout);
  session.waiter().await(header.finished, number, watch.on(CallWatch::kEverybody));
}

}  // namespace gradlink::shm
