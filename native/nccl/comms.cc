#include "nccl/comms.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>

#include "core/error.h"

namespace gradlink::nccl {
namespace {

/// How long running work may continue after a peer was lost. A peer that is done with a call may
/// exit at once, and this rank then has all it needs.
constexpr double kLostPeerMs = 100;

/// How long aborted work may take to leave the device before it is abandoned.
constexpr double kGraceMs = 5000;

std::string rankText(const Comms::Member& member) {
  return "rank " + std::to_string(member.rank) + " (" + member.device.label() + ")";
}

/// Checks for failures; a lost peer is none if `done` becomes true anyway.
void lookUnlessDone(const Watch& watch, const std::function<bool()>& done) {
  try {
    if (watch.look) watch.look();
  } catch (const Error& lost) {
    if (lost.code != ErrorCode::peerLost) throw;
    try {
      cuda::await(done, Deadline::in(std::min(kLostPeerMs, watch.leftMs())), watch.op);
    } catch (const Error&) {
      throw lost;
    }
  }
}

/// The first version whose aborts of one group are safe together: two could join one thread before.
constexpr int kAbortsTogether = 22703;

/// How long to wait for the abort of one member before starting the next.
constexpr std::chrono::seconds kOneAfterTheOther(1);

/// Each on its own thread: in some versions an abort waits for another communicator's.
void abortAll(const Library& library, const Comms::Members& members) {
  std::vector<std::future<void>> aborts;
  for (const auto& member : members) {
    if (member->handle == nullptr) continue;
    if (!aborts.empty() && library.info.version < kAbortsTogether) {
      aborts.back().wait_for(kOneAfterTheOther);
    }
    const auto abortOne = [&library, &member = *member] {
      try {
        member.device.makeCurrent();
      } catch (const Error&) {
        // A broken context: the library's own part can still end.
      }
      library.commAbort(member.handle);
      member.handle = nullptr;
    };
    if (members.size() == 1) {
      abortOne();
    } else {
      aborts.push_back(std::async(std::launch::async, abortOne));
    }
  }
}

}  // namespace

double Watch::leftMs() const {
  if (deadline.at() == Deadline::Clock::time_point::max()) {
    return std::numeric_limits<double>::infinity();
  }
  const std::chrono::duration<double, std::milli> left = deadline.at() - Deadline::Clock::now();
  return std::max(left.count(), 0.0);
}

Group::Group(const Library& library) : library_(library) {
  const abi::Result result = library.groupStart();
  if (isFailure(result)) throw library.failure(result, "beginning a group");
}

Group::~Group() {
  if (open_) library_.groupEnd();
}

abi::Result Group::end() {
  open_ = false;
  return library_.groupEnd();
}

abi::Result Group::simulate(abi::Simulation& simulation) {
  open_ = false;
  return library_.groupSimulateEnd(&simulation);
}

Comms::Comms(std::span<const int> ranks, std::span<cuda::Device* const> devices, int size)
    : library_(Library::get()), size_(size) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    members_.push_back(std::make_unique<Member>(ranks[i], *devices[i]));
  }
}

Comms::~Comms() { abort(); }

void Comms::open(std::span<const UniqueId> ids, const Watch& watch, bool blocking) {
  std::vector<abi::UniqueId> raw(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::copy(ids[i].begin(), ids[i].end(), raw[i].bytes);
  }
  abi::Config config;
  config.blocking = blocking ? 1 : 0;
  if (size_ > 1) keeping_.emplace();
  try {
    Group group(library_);
    abi::Result first = abi::kSuccess;
    for (const auto& member : members_) {
      member->device.makeCurrent();
      first = raw.size() == 1 ? library_.commInitRankConfig(&member->handle, size_, raw.front(),
                                                            member->rank, &config)
                              : library_.commInitRankScalable(&member->handle, size_, member->rank,
                                                              static_cast<int>(raw.size()),
                                                              raw.data(), &config);
      if (isFailure(first)) break;
    }
    const abi::Result end = group.end();
    if (isFailure(first) || isFailure(end)) {
      throw library_.failure(isFailure(first) ? first : end, "opening the communicator");
    }
    settle(watch, "the rendezvous of all ranks");
  } catch (...) {
    abort();
    throw;
  }
}

void Comms::group(const Watch& watch, const std::function<abi::Result(std::size_t)>& queue) {
  const cuda::Launching inOrder(isAlone(), watch.deadline, watch.op, watch.look);
  std::optional<cuda::NoAllocations> none;
  if (isAlone() && members_.size() > 1) none.emplace();
  Group group(library_);
  abi::Result first = abi::kSuccess;
  int blamed = -1;
  for (std::size_t i = 0; i < members_.size() && !isFailure(first); ++i) {
    members_[i]->device.makeCurrent();
    first = queue(i);
    blamed = members_[i]->rank;
  }
  const abi::Result end = group.end();
  if (isFailure(first)) throw library_.failure(first, watch.op).withRank(blamed).withOp(watch.op);
  if (isFailure(end)) throw library_.failure(end, watch.op).withOp(watch.op);
  settle(watch, watch.op);
}

std::unique_ptr<cuda::Launching> Comms::inFlight(const Watch& watch) const {
  if (!isAlone()) return nullptr;
  return std::make_unique<cuda::Launching>(true, watch.deadline, watch.op, watch.look);
}

void Comms::finish(const Watch& watch, std::span<cuda::Stream* const> streams) {
  for (std::size_t i = 0; i < members_.size(); ++i) members_[i]->done.record(*streams[i]);
  const auto allDone = [&] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const auto& member) { return member->done.done(); });
  };
  try {
    cuda::await(allDone, watch.deadline, watch.op, [&] {
      check(watch.op);
      lookUnlessDone(watch, allDone);
    });
  } catch (const Error& error) {
    if (error.code != ErrorCode::timeout || !watch.deadline.passed()) throw;
    throwLate(watch);
  }
}

void Comms::throwLate(const Watch& watch) const {
  std::vector<const Member*> late;
  for (const auto& member : members_) {
    if (!member->done.done()) late.push_back(member.get());
  }
  std::string names;
  for (const Member* member : late) names += (names.empty() ? "" : ", ") + rankText(*member);
  Error error(ErrorCode::timeout,
              std::string(watch.op) + ": the deadline has passed; not done: " + names +
                  (members_.size() < static_cast<std::size_t>(size_)
                       ? ". Did every rank make this call? timeoutMs sets the deadline"
                       : ". timeoutMs sets the deadline"));
  // If all ranks of a group are held here, their waiting tells nothing of which is stuck; nor does
  // one that may wait for another process.
  const bool holdsAll = members_.size() == static_cast<std::size_t>(size_);
  if (late.size() == 1 && members_.size() > 1 && holdsAll) error.withRank(late.front()->rank);
  throw error.withOp(watch.op);
}

bool Comms::settled(const char* op) const {
  bool all = true;
  const Member* failed = nullptr;
  abi::Result failure = abi::kSuccess;
  for (const auto& member : members_) {
    if (member->handle == nullptr) continue;
    abi::Result state = abi::kSuccess;
    const abi::Result asked = library_.commGetAsyncError(member->handle, &state);
    if (isFailure(asked)) state = asked;
    if (state == abi::kInProgress) all = false;
    // A remote error is a consequence: another rank has the cause.
    if (isFailure(state) && (failed == nullptr || failure == abi::kRemoteError)) {
      failed = member.get();
      failure = state;
    }
  }
  if (failed == nullptr) return all;
  Error error = library_.failure(failure, std::string(op) + ": " + rankText(*failed));
  if (failure != abi::kRemoteError) error.withRank(failed->rank);
  throw error.withOp(op);
}

void Comms::check(const char* op) const { settled(op); }

void Comms::settle(const Watch& watch, const char* what) const {
  const auto done = [&] { return settled(watch.op); };
  cuda::await(done, watch.deadline, what, [&] { lookUnlessDone(watch, done); });
}

void Comms::abort() {
  const bool open = std::any_of(members_.begin(), members_.end(),
                                [](const auto& member) { return member->handle != nullptr; });
  if (!open) return keeping_.reset();
  const cuda::SameContext same;
  abortAll(library_, members_);
  // Until then the caller's buffers are in use.
  const Deadline grace = Deadline::in(kGraceMs);
  for (const auto& member : members_) {
    try {
      cuda::await([&] { return member->stream.done(); }, grace, "ending aborted work");
    } catch (const Error&) {
      // The device failed or hangs: waiting is pointless, and freeing memory would wait.
      static const cuda::KeepMemory& forEver = *new cuda::KeepMemory;
      static_cast<void>(forEver);
    }
  }
  keeping_.reset();
}

void Comms::close(Deadline deadline) {
  const cuda::SameContext same;
  try {
    const Watch watch{"close", deadline, {}};
    for (const auto& member : members_) {
      if (member->handle == nullptr) continue;
      member->device.makeCurrent();
      const abi::Result result = library_.commFinalize(member->handle);
      if (isFailure(result)) throw library_.failure(result, watch.op);
    }
    settle(watch, watch.op);
    for (const auto& member : members_) {
      if (member->handle == nullptr) continue;
      member->device.makeCurrent();
      library_.commDestroy(member->handle);
      member->handle = nullptr;
    }
    keeping_.reset();
  } catch (const Error&) {
    abort();
  }
}

}  // namespace gradlink::nccl
