#include "shm/window.h"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/windows/arithmetic.h"

namespace gradlink::shm {
namespace {

/// How long the loss of a peer may go unnoticed while no call waits for it.
constexpr double kLookMs = 10;

std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

/// Holds an array's lock; for long only while data moves.
class ShmWindow::Hold {
 public:
  Hold(const ShmWindow& window, Head& head, int owner, const char* op, Deadline deadline)
      : waiter_(window.session_.waiter()), lock_(head.lock) {
    CallTimeout callTimeout(deadline);
    Holder holder(window.session_, lock_, owner, op, callTimeout);
    const auto mine = static_cast<std::uint32_t>(window.rank_ + 1);
    waiter_.awaitWhen(
        lock_,
        [&] {
          std::uint32_t free = 0;
          return lock_.value.load(std::memory_order_relaxed) == 0 &&
                 lock_.value.compare_exchange_strong(free, mine, std::memory_order_acquire);
        },
        holder);
  }
  ~Hold() { waiter_.publish(lock_, 0); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  /// The rank that has the lock, for a rank that waits.
  class Holder final : public Watch {
   public:
    Holder(Session& session, Flag& lock, int owner, const char* op, CallTimeout& given)
        : Watch(given), session_(session), lock_(lock), owner_(owner), op_(op) {}

    bool troubled() override {
      rank_ = static_cast<int>(lock_.value.load(std::memory_order_acquire)) - 1;
      lost_ = rank_ >= 0 && !session_.alive(rank_);
      return lost_ || callTimeout.deadline().passed();
    }
    [[noreturn]] void fail() override {
      const std::string memory = "the window's memory of rank " + std::to_string(owner_);
      const std::string name = "rank " + std::to_string(rank_);
      if (lost_) {
        session_.end(ErrorCode::peerLost, rank_, op_,
                     name + " was lost while it used " + memory + ": its process ended");
      }
      throw harmless(ErrorCode::timeout, op_,
                     rank_ < 0 ? memory + " was always in use by others until the deadline"
                               : name + " did not give " + memory +
                                     " back until the deadline: is its process stopped?")
          .withRank(rank_ < 0 ? owner_ : rank_);
    }

   private:
    Session& session_;
    Flag& lock_;
    const int owner_;
    const char* const op_;
    int rank_ = -1;
    bool lost_ = false;
  };

  const Waiter& waiter_;
  Flag& lock_;
};

// A rank's memory: heads (its own, then one for each source), advisory locks (one for each rank),
// arrays in the order of heads.
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
      refs_(size_),
      bases_(size_) {
  const std::size_t arrays = spec.sources.size() + 1;
  const std::size_t bytes = arrays * sizeof(Head) + lines(size_ * sizeof(std::uint32_t)) +
                            arrays * lines(count_ * sizeOf(dtype_));
  own_ = regions_.allocate(bytes);
  try {
    bases_[static_cast<std::size_t>(rank_)] = static_cast<std::byte*>(own_);
    meet(spec, options);
  } catch (...) {
    // No successful call has announced it.
    freed_ = true;
    regions_.release(own_);
    throw;
  }
}

ShmWindow::~ShmWindow() {
  // Without free() peers may still write here: the memory stays until the communicator closes.
  if (freed_) regions_.release(own_);
}

void ShmWindow::meet(const WindowSpec& spec, const CallOptions& options) {
  // The initial state for the first writer.
  const std::size_t bytes = count_ * sizeOf(dtype_);
  for (std::size_t slot = 0; slot <= sources_.size(); ++slot) {
    head(rank_, slot).p = slot == 0 ? 1.0 : 0.0;
    if (bytes > 0 && (slot == 0 || !spec.zeroInit))
      copyBytes(array(rank_, slot), spec.initial, bytes);
  }
  const BufferRef own = regions_.refer(own_, 1);
  table_.emplace(std::span(&spec, 1), communicator_.size(), exchangeOver(communicator_, options),
                 std::as_bytes(std::span(&own, 1)));
  for (int r = 0; r < table_->size(); ++r) {
    if (r == rank_) continue;
    BufferRef& theirs = refs_[static_cast<std::size_t>(r)];
    std::memcpy(&theirs, table_->extra(r), sizeof(theirs));
    bases_[static_cast<std::size_t>(r)] = regions_.resolve(theirs);
  }
}

std::size_t ShmWindow::slotOf(int owner, int source) const {
  const std::int64_t slot = owner == source ? WindowTable::kNoSlot : table_->slot(owner, source);
  if (slot == WindowTable::kNoSlot) {
    throw misuse("window", "rank " + std::to_string(source) + " is not a source of rank " +
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
    throw misuse("window", "expected ranks of 0.." + std::to_string(bound - 1));
  }
  return reinterpret_cast<std::atomic<std::uint32_t>*>(
      bases_[static_cast<std::size_t>(owner)] +
      table_->slots(owner) * sizeof(Head))[static_cast<std::size_t>(other)];
}

std::byte* ShmWindow::array(int rank, std::size_t slot) const {
  const std::size_t slots = rank == rank_ ? sources_.size() + 1 : table_->slots(rank);
  return bases_[static_cast<std::size_t>(rank)] + slots * sizeof(Head) +
         lines(size_ * sizeof(std::uint32_t)) + slot * lines(count_ * sizeOf(dtype_));
}

bool ShmWindow::timeToLook() const {
  if (!session_.betweenProcesses() || !nextLook_.passed()) return false;
  nextLook_ = Deadline::in(kLookMs);
  return true;
}

void ShmWindow::checkUsable(const char* op, int peer, bool left, bool look) const {
  if (session_.hasLeft(peer)) {
    if (!left) return;
    // A rank that left because the communicator ended said so first: that is the cause.
    session_.check(op);
    throw harmless(ErrorCode::peerLost, op,
                   "rank " + std::to_string(peer) + " has left the communicator")
        .withRank(peer);
  }
  if (look && !session_.alive(peer) && !session_.hasLeft(peer)) {
    session_.end(ErrorCode::peerLost, peer, op,
                 "rank " + std::to_string(peer) + " was lost: its process ended");
  }
}

void ShmWindow::checkUsable(const char* op, std::span<const Neighbor> peers, bool left) const {
  if (freed_) throw misuse(op, "the window was freed");
  const bool look = timeToLook();
  for (const Neighbor& peer : peers) checkUsable(op, peer.rank, left, look);
}

void* ShmWindow::data() { return array(rank_, 0); }

const void* ShmWindow::seen(int source) {
  static_cast<void>(slotOf(rank_, source));
  return array(source, 0);
}

void ShmWindow::put(void* values, std::span<const Neighbor> destinations, double selfWeight,
                    bool accumulate, bool withP, Deadline deadline) {
  const char* const op = accumulate ? "accumulate" : "put";
  checkWindowWeight(dtype_, selfWeight);
  for (const Neighbor& to : destinations) {
    static_cast<void>(slotOf(to.rank, rank_));
    checkWindowWeight(dtype_, to.weight);
  }
  checkUsable(op, destinations, true);
  Head& own = head(rank_, 0);
  for (const Neighbor& to : destinations) {
    const std::size_t slot = slotOf(to.rank, rank_);
    Head& there = head(to.rank, slot);
    std::byte* const buffer = array(to.rank, slot);
    const Hold hold(*this, there, to.rank, op, deadline);
    if (!accumulate) {
      scaledCopy(buffer, values, to.weight, count_, dtype_);
      there.version.fetch_add(1, std::memory_order_relaxed);
    } else {
      addScaled(buffer, values, to.weight, count_, dtype_);
    }
    if (withP) there.p = (accumulate ? there.p : 0) + to.weight * own.p;
  }
  if (selfWeight == 1) return;
  const Hold hold(*this, own, rank_, op, deadline);
  scaledCopy(values, values, selfWeight, count_, dtype_);
  if (withP) own.p *= selfWeight;
}

void ShmWindow::get(std::span<const Neighbor> sources, bool withP, Deadline deadline) {
  for (const Neighbor& from : sources) {
    static_cast<void>(slotOf(rank_, from.rank));
    checkWindowWeight(dtype_, from.weight);
  }
  checkUsable("get", sources, true);
  for (const Neighbor& from : sources) {
    const std::size_t slot = slotOf(rank_, from.rank);
    Head& here = head(rank_, slot);
    Head& there = head(from.rank, 0);
    // The same order everywhere: no rank holds an own array while it waits for a buffer.
    const Hold buffer(*this, here, rank_, "get", deadline);
    const Hold theirs(*this, there, from.rank, "get", deadline);
    scaledCopy(array(rank_, slot), array(from.rank, 0), from.weight, count_, dtype_);
    here.version.fetch_add(1, std::memory_order_relaxed);
    if (withP) here.p = from.weight * there.p;
  }
}

void ShmWindow::update(void* out, double selfWeight, std::span<const Neighbor> sources,
                       std::size_t divisor, bool reset, bool withP, Deadline deadline) {
  // What a source wrote before it left counts.
  checkUsable("update", sources, false);
  checkWindowWeight(dtype_, selfWeight);
  std::vector<const void*> src = {data()};
  std::vector<double> weights = {selfWeight};
  for (const Neighbor& from : sources) {
    checkWindowWeight(dtype_, from.weight);
    src.push_back(array(rank_, slotOf(rank_, from.rank)));
    weights.push_back(from.weight);
  }
  std::vector<std::unique_ptr<Hold>> holds;
  for (const Neighbor& from : sources) {
    Head& buffer = head(rank_, slotOf(rank_, from.rank));
    holds.push_back(std::make_unique<Hold>(*this, buffer, rank_, "update", deadline));
  }
  Head& own = head(rank_, 0);
  holds.push_back(std::make_unique<Hold>(*this, own, rank_, "update", deadline));
  combine(out == nullptr ? data() : out, src, weights, divisor, count_, dtype_);
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

int ShmWindow::tryLock(int owner, int other) {
  const char* const op = "withMutex";
  if (freed_) throw misuse(op, "the window was freed");
  checkUsable(op, owner, true, true);
  std::uint32_t holder = 0;
  const auto mine = static_cast<std::uint32_t>(rank_ + 1);
  if (mutex(owner, other).compare_exchange_strong(holder, mine, std::memory_order_acquire)) {
    return kLocked;
  }
  const int has = static_cast<int>(holder) - 1;
  checkUsable(op, has, true, true);
  return has;
}

void ShmWindow::unlock(int owner, int other) {
  mutex(owner, other).store(0, std::memory_order_release);
}

void ShmWindow::free(const CallOptions& options) {
  if (freed_) throw misuse("free", "the window was freed");
  communicator_.barrier(options);
  freed_ = true;
  for (const BufferRef& theirs : refs_) regions_.forget(theirs);
}

}  // namespace gradlink::shm
