#include "core/fusion.h"
#include "core/kernels/copy_bytes.h"

#include <algorithm>
#include <cstdint>

namespace gradlink {
namespace {

bool same(const std::vector<Neighbor>& a, const std::vector<Neighbor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.rank == y.rank && x.weight == y.weight;
  });
}

bool same(const Neighborhood& a, const Neighborhood& b) {
  return a.selfWeight == b.selfWeight && a.check == b.check && a.divisor == b.divisor &&
         same(a.sources, b.sources) && same(a.destinations, b.destinations);
}

std::int32_t leastOfAll(Communicator& communicator, std::int32_t mine, const CallOptions& options) {
  const std::size_t held = communicator.heldRanks().size();
  if (held == static_cast<std::size_t>(communicator.size())) return mine;
  std::vector<std::int32_t> values(held, mine);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (std::int32_t& value : values) {
    in.push_back(&value);
    out.push_back(&value);
  }
  communicator.allReduce({in, out}, 1, DType::int32, ReduceOp::min, options);
  return values[0];
}

}  // namespace

bool FusedCall::fitsTo(const FusedCall& other) const {
  return dtype == other.dtype && op == other.op && in.size() == other.in.size() &&
         std::equal(neighborhoods.begin(), neighborhoods.end(), other.neighborhoods.begin(),
                    other.neighborhoods.end(),
                    [](const auto& a, const auto& b) { return same(a, b); });
}

void FusedCall::run(Communicator& communicator) const {
  if (neighborhoods.empty()) return communicator.allReduce({in, out}, count, dtype, op, options());
  communicator.neighborAllReduce({in, out}, count, dtype, neighborhoods, options());
}

void Fusion::setLimits(std::size_t mostBytes, std::chrono::microseconds wait) {
  const std::lock_guard lock(mutex_);
  mostBytes_ = mostBytes;
  wait_ = wait;
}

void Fusion::boundary() {
  if (mostBytes_ == 0) return;
  const std::lock_guard lock(mutex_);
  ++segment_;
  issued_.notify_one();
}

std::shared_ptr<Fusion::Entry> Fusion::add(FusedCall call, std::size_t segment) {
  auto entry = std::make_shared<Entry>();
  entry->call = std::move(call);
  entry->segment = segment;
  const std::lock_guard lock(mutex_);
  segment_ = segment;
  waiting_.push_back(entry);
  issued_.notify_one();
  return entry;
}

void Fusion::finish(Communicator& communicator, Entry& entry) {
  while (!entry.done) runFront(communicator);
  if (entry.error) std::rethrow_exception(entry.error);
}

std::size_t Fusion::together(bool& complete) const {
  const Entry& first = *waiting_.front();
  std::size_t bytes = 0;
  std::size_t calls = 0;
  for (const auto& entry : waiting_) {
    bytes += entry->call.bytes();
    complete = entry->segment != first.segment || !entry->call.fitsTo(first.call) ||
               (calls > 0 && bytes > mostBytes_);
    if (complete) return calls;
    ++calls;
  }
  complete = bytes >= mostBytes_ || segment_ != first.segment;
  return calls;
}

std::size_t Fusion::awaitFront() {
  std::unique_lock lock(mutex_);
  bool complete = false;
  if (wait_.count() > 0) {
    issued_.wait_for(lock, wait_, [&] {
      together(complete);
      return complete;
    });
  }
  // From here on these calls cannot be cancelled: other ranks count on them.
  const std::size_t most = together(complete);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < most; ++i) {
    const std::shared_ptr<Entry> entry = waiting_[kept];
    if (entry->begun || entry->call.begin()) {
      entry->begun = true;
      ++kept;
      continue;
    }
    entry->error =
        std::make_exception_ptr(Error(ErrorCode::aborted, "dropped before it began").stillUsable());
    entry->done = true;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  return kept;
}

std::vector<std::shared_ptr<Fusion::Entry>> Fusion::take(std::size_t calls) {
  const std::lock_guard lock(mutex_);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(calls);
  std::vector<std::shared_ptr<Entry>> taken(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

void Fusion::runFront(Communicator& communicator) {
  const std::size_t mine = awaitFront();
  if (mine == 0) return;
  std::vector<std::shared_ptr<Entry>> taken;
  std::exception_ptr error;
  try {
    const CallOptions options = frontOptions();
    taken = take(static_cast<std::size_t>(
        leastOfAll(communicator, static_cast<std::int32_t>(mine), options)));
    runTogether(communicator, taken);
  } catch (...) {
    error = std::current_exception();
    if (taken.empty()) taken = take(1);
  }
  for (const auto& entry : taken) {
    entry->error = error;
    entry->done = true;
  }
}

CallOptions Fusion::frontOptions() {
  const std::lock_guard lock(mutex_);
  return waiting_.front()->call.options();
}

void Fusion::runTogether(Communicator& communicator,
                         const std::vector<std::shared_ptr<Entry>>& taken) {
  if (taken.size() == 1) return taken.front()->call.run(communicator);
  FusedCall all = taken.front()->call;
  all.count = 0;
  all.name.clear();
  for (const auto& entry : taken) {
    all.count += entry->call.count;
    if (!entry->call.name.empty()) all.name += (all.name.empty() ? "" : ", ") + entry->call.name;
  }
  scratch_.resize(all.in.size());
  for (std::size_t r = 0; r < all.in.size(); ++r) {
    if (scratch_[r].size() < all.bytes()) scratch_[r].resize(all.bytes());
    std::byte* to = scratch_[r].data();
    all.in[r] = all.out[r] = to;
    for (const auto& entry : taken) {
      copyBytes(to, entry->call.in[r], entry->call.bytes());
      to += entry->call.bytes();
    }
  }
  all.run(communicator);
  for (std::size_t r = 0; r < all.in.size(); ++r) {
    const std::byte* from = scratch_[r].data();
    for (const auto& entry : taken) {
      copyBytes(entry->call.out[r], from, entry->call.bytes());
      from += entry->call.bytes();
    }
  }
}

}  // namespace gradlink
