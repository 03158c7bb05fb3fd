#include "shm/window.h"

#include <sched.h>

#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/reduce_kernels.h"

namespace gradlink::shm {
namespace {

constexpr std::int32_t kNoSlot = -1;

std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

Error misuse(const std::string& text) {
  return Error(ErrorCode::invalidArgument, "window: " + text).withOp("window").stillUsable();
}

}  // namespace

/// Holds an array's lock: long only while its data moves.
class ShmWindow::Hold {
 public:
  Hold(Head& head, int owner, Deadline deadline) : head_(head) {
    constexpr int kSpins = 256;
    for (int tries = 0;; ++tries) {
      std::uint32_t free = 0;
      if (head_.lock.load(std::memory_order_relaxed) == 0 &&
          head_.lock.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
        return;
      }
      if (tries < kSpins) continue;
      if (deadline.passed()) {
        throw Error(ErrorCode::timeout, "window: memory of rank " + std::to_string(owner) +
                                            " stayed locked: who uses it is stuck or was killed")
            .withOp("window")
            .withRank(owner)
            .stillUsable();
      }
      sched_yield();
    }
  }
  ~Hold() { head_.lock.store(0, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Head& head_;
};

// A rank's memory: heads (its own, then one a source), program locks (one a rank), arrays in the
// order of the heads.
ShmWindow::ShmWindow(Communicator& communicator, Session& session, SharedRegions& regions,
                     const WindowSpec& spec, const CallOptions& options)
    : communicator_(communicator),
      session_(session),
      regions_(regions),
      rank_(session.rank()),
      size_(static_cast<std::size_t>(session.size())),
      count_(spec.count),
      dtype_(spec.dtype),
      sources_(spec.sources),
      bases_(size_),
      slots_(size_ * size_, kNoSlot) {
  const std::size_t arrays = spec.sources.size() + 1;
  const std::size_t bytes = arrays * sizeof(Head) + lines(size_ * sizeof(std::uint32_t)) +
                            arrays * lines(count_ * sizeOf(dtype_));
  own_ = regions_.allocate(bytes);
  try {
    bases_[static_cast<std::size_t>(rank_)] = static_cast<std::byte*>(own_);
    slots_[static_cast<std::size_t>(rank_) * size_ + static_cast<std::size_t>(rank_)] = 0;
    meet(spec, options);
  } catch (...) {
    // Nobody has been told of it in a call that succeeded.
    freed_ = true;
    regions_.release(own_);
    throw;
  }
}

ShmWindow::~ShmWindow() {
  // Without free() peers may still write here: the memory stays until the communicator goes.
  if (freed_) regions_.release(own_);
}

void ShmWindow::meet(const WindowSpec& spec, const CallOptions& options) {
  struct Row {
    BufferRef memory;
    std::uint64_t count;
    std::uint64_t dtype;
  };
  // Then each rank's slot here, and whether this rank writes there.
  const std::size_t width = sizeof(Row) + 2 * size_ * sizeof(std::int32_t);
  std::vector<std::byte> mine(width);
  std::vector<std::byte> all(width * size_);
  const Row row{regions_.refer(own_, 1), count_, static_cast<std::uint64_t>(dtype_)};
  std::memcpy(mine.data(), &row, sizeof(row));
  std::vector<std::int32_t> lists(2 * size_, kNoSlot);
  for (std::size_t i = 0; i < spec.sources.size(); ++i)
    lists[static_cast<std::size_t>(spec.sources[i])] = static_cast<std::int32_t>(i + 1);
  for (const int to : spec.destinations) lists[size_ + static_cast<std::size_t>(to)] = 1;
  std::memcpy(mine.data() + sizeof(row), lists.data(), lists.size() * sizeof(std::int32_t));

  // What the first writer finds.
  const std::size_t bytes = count_ * sizeOf(dtype_);
  for (std::size_t slot = 0; slot <= sources_.size(); ++slot) {
    head(rank_, slot).p = slot == 0 ? 1.0 : 0.0;
    if (bytes > 0 && (slot == 0 || !spec.zeroInit))
      std::memcpy(array(rank_, slot), spec.initial, bytes);
  }

  const void* const in[] = {mine.data()};
  void* const out[] = {all.data()};
  communicator_.allGather({in, out}, width, DType::uint8, options);

  std::vector<std::vector<std::int32_t>> told(size_, std::vector<std::int32_t>(2 * size_));
  std::vector<Row> rows(size_);
  for (std::size_t r = 0; r < size_; ++r) {
    std::memcpy(&rows[r], all.data() + r * width, sizeof(Row));
    std::memcpy(told[r].data(), all.data() + r * width + sizeof(Row),
                2 * size_ * sizeof(std::int32_t));
  }
  const auto disagree = [](std::size_t first, std::size_t second, const std::string& text) {
    throw Error(ErrorCode::mismatch, "createWindow: rank " + std::to_string(first) + " and rank " +
                                         std::to_string(second) + " disagree: " + text)
        .withOp("createWindow")
        .stillUsable();
  };
  for (std::size_t r = 0; r < size_; ++r) {
    if (rows[r].count != rows[0].count || rows[r].dtype != rows[0].dtype)
      disagree(0, r, "other counts or element types");
    for (std::size_t to = 0; to < size_; ++to) {
      const bool sends = told[r][size_ + to] != kNoSlot;
      const bool awaited = told[to][r] != kNoSlot;
      if (sends != awaited) {
        disagree(r, to,
                 sends ? "the second does not name the first as a source"
                       : "the first does not name the second as a destination");
      }
      slots_[r * size_ + to] = r == to ? 0 : told[r][to];
    }
  }
  for (std::size_t r = 0; r < size_; ++r) {
    if (r != static_cast<std::size_t>(rank_)) bases_[r] = regions_.resolve(rows[r].memory);
  }
}

std::size_t ShmWindow::slotOf(int owner, int source) const {
  const auto bound = static_cast<int>(size_);
  const std::int32_t slot =
      owner < 0 || owner >= bound || source < 0 || source >= bound || owner == source
          ? kNoSlot
          : slots_[static_cast<std::size_t>(owner) * size_ + static_cast<std::size_t>(source)];
  if (slot == kNoSlot) {
    throw misuse("rank " + std::to_string(source) + " is no source of rank " +
                 std::to_string(owner));
  }
  return static_cast<std::size_t>(slot);
}

ShmWindow::Head& ShmWindow::head(int rank, std::size_t slot) const {
  return reinterpret_cast<Head*>(bases_[static_cast<std::size_t>(rank)])[slot];
}

std::atomic<std::uint32_t>& ShmWindow::mutex(int owner, int other) const {
  const auto bound = static_cast<int>(size_);
  if (owner < 0 || owner >= bound || other < 0 || other >= bound) {
    throw misuse("expected ranks of 0.." + std::to_string(bound - 1));
  }
  const auto at = static_cast<std::size_t>(owner);
  std::size_t slots = 0;
  for (std::size_t r = 0; r < size_; ++r) slots += slots_[at * size_ + r] != kNoSlot;
  return reinterpret_cast<std::atomic<std::uint32_t>*>(
      bases_[at] + slots * sizeof(Head))[static_cast<std::size_t>(other)];
}

std::byte* ShmWindow::array(int rank, std::size_t slot) const {
  const auto at = static_cast<std::size_t>(rank);
  std::size_t slots = sources_.size() + 1;
  if (rank != rank_) {
    slots = 0;
    for (std::size_t r = 0; r < size_; ++r) slots += slots_[at * size_ + r] != kNoSlot;
  }
  return bases_[at] + slots * sizeof(Head) + lines(size_ * sizeof(std::uint32_t)) +
         slot * lines(count_ * sizeOf(dtype_));
}

void ShmWindow::checkUsable(int peer) const {
  if (freed_) throw misuse("it was freed");
  if (session_.hasLeft(peer)) {
    throw Error(ErrorCode::peerLost,
                "window: rank " + std::to_string(peer) + " has left the communicator")
        .withOp("window")
        .withRank(peer)
        .stillUsable();
  }
}

void ShmWindow::checkWeight(double weight) const {
  if (weight != 1 && dtype_ < DType::float16) {
    throw misuse(std::string("weights other than 1 need a float type, not ") + nameOf(dtype_));
  }
}

void ShmWindow::scaled(void* to, const void* from, double weight) const {
  if (weight == 1) {
    if (to != from && count_ > 0) std::memcpy(to, from, count_ * sizeOf(dtype_));
    return;
  }
  const void* const src[] = {from};
  weightedSum(to, src, {&weight, 1}, count_, dtype_);
}

void* ShmWindow::data() { return array(rank_, 0); }

void ShmWindow::put(void* values, std::span<const Neighbor> destinations, double selfWeight,
                    bool accumulate, bool withP, Deadline deadline) {
  checkWeight(selfWeight);
  for (const Neighbor& to : destinations) {
    static_cast<void>(slotOf(to.rank, rank_));
    checkUsable(to.rank);
    checkWeight(to.weight);
  }
  Head& own = head(rank_, 0);
  for (const Neighbor& to : destinations) {
    const std::size_t slot = slotOf(to.rank, rank_);
    Head& there = head(to.rank, slot);
    std::byte* const buffer = array(to.rank, slot);
    const Hold hold(there, to.rank, deadline);
    if (!accumulate) {
      scaled(buffer, values, to.weight);
      there.version.fetch_add(1, std::memory_order_relaxed);
    } else {
      const void* const src[] = {buffer, values};
      void* const dst[] = {buffer};
      const double weights[] = {1, to.weight};
      if (to.weight == 1) {
        reduceMany(dst, src, count_, dtype_, ReduceOp::sum);
      } else {
        weightedSum(buffer, src, weights, count_, dtype_);
      }
    }
    if (withP) there.p = (accumulate ? there.p : 0) + to.weight * own.p;
  }
  if (selfWeight == 1) return;
  const Hold hold(own, rank_, deadline);
  scaled(values, values, selfWeight);
  if (withP) own.p *= selfWeight;
}

void ShmWindow::get(std::span<const Neighbor> sources, bool withP, Deadline deadline) {
  for (const Neighbor& from : sources) {
    static_cast<void>(slotOf(rank_, from.rank));
    checkUsable(from.rank);
    checkWeight(from.weight);
  }
  for (const Neighbor& from : sources) {
    const std::size_t slot = slotOf(rank_, from.rank);
    Head& here = head(rank_, slot);
    Head& there = head(from.rank, 0);
    // In this order everywhere: no rank holds an own array while it waits for a buffer.
    const Hold buffer(here, rank_, deadline);
    const Hold theirs(there, from.rank, deadline);
    scaled(array(rank_, slot), array(from.rank, 0), from.weight);
    here.version.fetch_add(1, std::memory_order_relaxed);
    if (withP) here.p = from.weight * there.p;
  }
}

void ShmWindow::update(void* out, double selfWeight, std::span<const Neighbor> sources,
                       std::size_t divisor, bool reset, bool withP, Deadline deadline) {
  if (freed_) throw misuse("it was freed");
  checkWeight(selfWeight);
  bool plain = selfWeight == 1;
  std::vector<const void*> src = {data()};
  std::vector<double> weights = {selfWeight};
  for (const Neighbor& from : sources) {
    checkWeight(from.weight);
    plain = plain && from.weight == 1;
    src.push_back(array(rank_, slotOf(rank_, from.rank)));
    weights.push_back(from.weight);
  }
  std::vector<std::unique_ptr<Hold>> holds;
  for (const Neighbor& from : sources) {
    holds.push_back(std::make_unique<Hold>(head(rank_, slotOf(rank_, from.rank)), rank_, deadline));
  }
  Head& own = head(rank_, 0);
  holds.push_back(std::make_unique<Hold>(own, rank_, deadline));
  void* const dst[] = {out == nullptr ? data() : out};
  if (plain) {
    reduceMany(dst, src, count_, dtype_, ReduceOp::sum);
  } else {
    weightedSum(dst[0], src, weights, count_, dtype_);
  }
  divideBy(dst[0], count_, dtype_, divisor);
  double p = selfWeight * own.p;
  for (const Neighbor& from : sources) {
    const std::size_t slot = slotOf(rank_, from.rank);
    Head& buffer = head(rank_, slot);
    p += from.weight * buffer.p;
    buffer.version.store(0, std::memory_order_relaxed);
    if (!reset) continue;
    if (count_ > 0) std::memset(array(rank_, slot), 0, count_ * sizeOf(dtype_));
    buffer.p = 0;
  }
  if (withP && out == nullptr) own.p = p / static_cast<double>(divisor);
}

std::vector<std::uint64_t> ShmWindow::versions() {
  std::vector<std::uint64_t> counts;
  for (std::size_t slot = 1; slot <= sources_.size(); ++slot)
    counts.push_back(head(rank_, slot).version.load(std::memory_order_relaxed));
  return counts;
}

double ShmWindow::p() { return head(rank_, 0).p; }

bool ShmWindow::tryLock(int owner, int other) {
  checkUsable(owner);
  std::uint32_t free = 0;
  return mutex(owner, other).compare_exchange_strong(free, 1, std::memory_order_acquire);
}

void ShmWindow::unlock(int owner, int other) {
  mutex(owner, other).store(0, std::memory_order_release);
}

void ShmWindow::free(const CallOptions& options) {
  if (freed_) throw misuse("it was freed");
  communicator_.barrier(options);
  freed_ = true;
}

}  // namespace gradlink::shm
