#include "shm/joined.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/kernels/reduce_kernels.h"
#include "shm/shared_direct.h"
#include "shm/shm_wire.h"
#include "shm/window.h"

namespace gradlink::shm {
namespace {

// Threads can read each other's buffers, so copying pays only while it saves the second rendezvous.
constexpr std::size_t kOneShotBytesOfThreads = 2 << 10;
constexpr std::size_t kOneShotBytesOfProcesses = kMostOneShotBytes;
constexpr int kFewRanks = 16;
// Plain and streaming stores.
constexpr int kOneShotWays = 2;

Membership meetOthers(const JoinOptions& options, Deadline deadline) {
  if (options.size == 1) return meetNobody(options);
  return options.threads ? meetThreads(options, deadline) : meetProcesses(options, deadline);
}

Membership meetForWire(JoinOptions options, Deadline deadline) {
  options.slotBytes = 1;
  return meetOthers(options, deadline);
}

void checkPlace(const JoinOptions& options) {
  if (options.size < 1 || options.size > kMaxRanks) {
    throw misuse("join", "size must be 1.." + std::to_string(kMaxRanks) + ", got " +
                             std::to_string(options.size));
  }
  if (options.rank < 0 || options.rank >= options.size) {
    throw misuse("join", "rank must be 0.." + std::to_string(options.size - 1) + ", got " +
                             std::to_string(options.rank));
  }
}

}  // namespace

Joined::Joined(const JoinOptions& options, Membership membership)
    : OneRank(options.rank),
      options_(options),
      deferredUnmaps_(membership.deferredUnmaps),
      session_(std::move(membership), options.rank),
      regions_(session_),
      mailboxes_(session_),
      styles_(session_),
      oneShotBytes_(session_.betweenProcesses() ? kOneShotBytesOfProcesses
                                                : kOneShotBytesOfThreads),
      in_(static_cast<std::size_t>(options.size)),
      out_(static_cast<std::size_t>(options.size)) {}

Joined::~Joined() {
  close();
  // Windows that were not freed: threads may still write there.
  if (deferredUnmaps_) deferredUnmaps_->take(regions_.abandon());
}

CallTimeout Joined::callTimeoutOf(const CallOptions& options) const {
  return CallTimeout(options.timeoutMs < 0 ? options_.timeoutMs : options.timeoutMs, options.name);
}

void Joined::checkOpen(const char* op) {
  if (closed_.load(std::memory_order_acquire)) {
    throw Error(ErrorCode::closed, std::string(op) + ": the communicator is closed").withOp(op);
  }
  session_.check(op);
}

template <class Body>
auto Joined::guarded(const char* op, Body body) {
  checkOpen(op);
  try {
    return body();
  } catch (const Error& error) {
    if (!error.usable) drainPeers(session_);
    throw;
  }
}

void Joined::run(const Call& call) {
  const Shape& shape = call.shape;
  const bool weighs = shape.kind == Kind::neighborAllReduce;
  if (shape.kind == Kind::allReduce && oneShotAllReduce(shape, call.buffers, call.options)) return;
  if (!isPlain(shape.kind) && !weighs && !isMessage(shape.kind)) return compose(call);
  guarded(call.op(), [&] {
    CallTimeout callTimeout = callTimeoutOf(call.options);
    if (shape.kind == Kind::barrier) {
      session_.meetWithPayload({}, callTimeout);
    } else if (isMessage(shape.kind)) {
      transfer(ownMessage(call), callTimeout);
    } else {
      if (weighs) checkShape(shape, size());
      const Neighborhood* const own = weighs ? &ownNeighborhood(call.neighborhoods) : nullptr;
      move(shape, call.buffers, own, callTimeout);
    }
  });
}

void Joined::transfer(Message& message, CallTimeout& callTimeout) {
  const auto& [held, peer, tag, sends, dtype, count, data, got] = message;
  if (sends) return mailboxes_.send(data, count, dtype, peer, tag, callTimeout);
  message.got = mailboxes_.receive(data, count, dtype, peer, tag, callTimeout);
}

void Joined::move(const Shape& shape, const Buffers& buffers, const Neighborhood* own,
                  CallTimeout& callTimeout) {
  checkBuffers(shape, buffers);
  const std::size_t largest = largestInput(shape, size());
  if (largest <= oneShotBytes_) return oneShot(shape, buffers, own, largest, callTimeout);

  const std::size_t block = shape.count * sizeOf(shape.dtype);
  const void* in = inBlocks(shape, size(), rank()) > 0 ? buffers.in[0] : nullptr;
  void* out = outBlocks(shape, size(), rank()) > 0 ? buffers.out[0] : nullptr;
  const BufferRef refs[2] = {regions_.refer(in, inBlocks(shape, size(), rank()) * block),
                             regions_.refer(out, outBlocks(shape, size(), rank()) * block)};
  // Long calls count their own work too.
  callTimeout.deadline();
  if (own != nullptr) writeNeighborRow(session_.nextAppendix(), *own, size());
  const std::uint32_t call = session_.meet(shape, refs, callTimeout);
  std::vector<WeightRow> weights;
  if (own != nullptr) {
    weights = resolveNeighborRows(size(), [&](int r) { return session_.appendix(r, call); });
  }
  if (direct(shape, call, weights, callTimeout)) return;
  stage({shape, static_cast<const std::byte*>(in), static_cast<std::byte*>(out), weights}, largest,
        call, callTimeout);
}

// A fast path of oneShot() for the most frequent small call. False for other or invalid calls.
bool Joined::oneShotAllReduce(const Shape& shape, const Buffers& buffers,
                              const CallOptions& options) {
  const std::size_t elementSize = sizeOf(shape.dtype);
  if (shape.count == 0 || shape.count > oneShotBytes_ / elementSize || size() > kFewRanks ||
      buffers.in.size() != 1 || buffers.out.size() != 1 || buffers.in[0] == nullptr ||
      buffers.out[0] == nullptr) {
    return false;
  }
  guarded("allReduce", [&] {
    CallTimeout callTimeout = callTimeoutOf(options);
    const std::size_t bytes = shape.count * elementSize;
    const void* src[kFewRanks];
    const auto reduceFrom = [&](std::uint32_t call) {
      for (int r = 0; r < size(); ++r) src[r] = session_.payload(r, call, bytes);
      src[rank()] = buffers.in[0];
      reduceMany(buffers.out, {src, static_cast<std::size_t>(size())}, shape.count, shape.dtype,
                 shape.op);
    };
    if (bytes < StagingStyles::kFewestBytes) {
      reduceFrom(
          session_.meet(shape, {static_cast<const std::byte*>(buffers.in[0]), bytes}, callTimeout));
      return;
    }
    StagingWork work = styles_.plan(shape, bytes, kOneShotWays);
    void* const payload[] = {session_.nextPayload(bytes)};
    work.timed(work.first(),
               [&] { copyMany(payload, buffers.in[0], bytes, work.first() == kStreaming); });
    const std::uint32_t call = session_.meetWithPayload(shape, callTimeout);
    styles_.met(shape, bytes, kOneShotWays, call);
    work.timed(work.first(), [&] { reduceFrom(call); });
    styles_.spent(work);
  });
  return true;
}

void* Joined::allocShared(std::size_t bytes) {
  checkOpen("allocShared");
  return regions_.allocate(bytes);
}

// The ranks of a part or wire were all here a moment ago. A rank that was lost since will not come;
// one that left has failed the rendezvous only if it is missing. Other ranks are irrelevant.
std::function<void(std::span<const int>)> Joined::seeing(const char* op, std::vector<int> ranks) {
  return [this, op, ranks = std::move(ranks)](std::span<const int> missing) {
    const auto check = [&] {
      try {
        session_.check(op);
      } catch (const Error& error) {
        const bool others = std::find(ranks.begin(), ranks.end(), error.rank) == ranks.end();
        if (error.code != ErrorCode::peerLost || !others) throw;
      }
    };
    check();
    const auto end = [&](int rank, const char* how) {
      // A rank that left because the communicator ended said so first: that is the cause.
      check();
      const std::string message = "rank " + std::to_string(rank) + how;
      session_.failAll(ErrorCode::peerLost, rank, op, message);
      throw Error(ErrorCode::peerLost, std::string(op) + ": " + message).withRank(rank).withOp(op);
    };
    for (const int rank : ranks) {
      if (!session_.alive(rank) && !session_.hasLeft(rank))
        end(rank, " was lost: its process ended");
    }
    for (const int absent : missing) {
      const int rank = ranks[static_cast<std::size_t>(absent)];
      if (session_.hasLeft(rank)) end(rank, " has left the communicator");
    }
  };
}

std::unique_ptr<Communicator> Joined::split(int color, int key, const CallOptions& o) {
  return guarded("split", [&]() -> std::unique_ptr<Communicator> {
    CallTimeout callTimeout = callTimeoutOf(o);
    const std::int32_t mine[2] = {color, key};
    Shape shape;
    shape.kind = Kind::split;
    const std::uint32_t call = session_.meet(shape, std::as_bytes(std::span(mine)), callTimeout);
    ++splits_;
    std::vector<std::pair<int, int>> members;  // key, old rank
    for (int r = 0; r < size(); ++r) {
      std::int32_t theirs[2];
      std::memcpy(theirs, session_.payload(r, call, sizeof(theirs)), sizeof(theirs));
      if (theirs[0] == color) members.emplace_back(theirs[1], r);
    }
    if (color < 0) return nullptr;
    std::sort(members.begin(), members.end());
    JoinOptions options = options_;
    const auto self =
        std::find_if(members.begin(), members.end(), [&](auto& m) { return m.second == rank(); });
    // Unique: no application uses such a name, and no other split of this communicator.
    options.name += "/split " + std::to_string(splits_) + "/" + std::to_string(color);
    options.rank = static_cast<int>(self - members.begin());
    options.size = static_cast<int>(members.size());
    options.cancelled = nullptr;  // belonged to the join that made this communicator
    std::vector<int> ranks(members.size());
    std::transform(members.begin(), members.end(), ranks.begin(),
                   [](const auto& member) { return member.second; });
    options.look = seeing("split", ranks);
    Membership membership = meetOthers(options, callTimeout.deadline());
    options.look = nullptr;
    return std::make_unique<Joined>(options, std::move(membership));
  });
}

std::unique_ptr<Wire> Joined::openWire(const CallOptions& o) {
  return guarded("openWire", [&]() -> std::unique_ptr<Wire> {
    CallTimeout callTimeout = callTimeoutOf(o);
    JoinOptions options = options_;
    options.name += "/wire " + std::to_string(++wires_);
    options.cancelled = nullptr;
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    options.look = seeing("openWire", ranks);
    return std::make_unique<ShmWire>(meetForWire(options, callTimeout.deadline()), options.rank);
  });
}

std::unique_ptr<Window> Joined::openWindow(const WindowSpec& spec, const CallOptions& o) {
  return guarded("createWindow", [&]() -> std::unique_ptr<Window> {
    return std::make_unique<ShmWindow>(*this, session_, regions_, spec, o);
  });
}

void Joined::abort(const std::string& reason) {
  if (closed_.load(std::memory_order_acquire)) return;
  session_.failAll(
      ErrorCode::aborted, rank(), "abort",
      "the communicator was aborted by rank " + std::to_string(rank()) + ": " + reason);
}

void Joined::fail(const Error& error) {
  if (closed_.load(std::memory_order_acquire)) return;
  session_.failAll(error.code, error.rank, error.op.c_str(), error.what());
}

void Joined::follow(Communicator& above) {
  if (const auto* joined = dynamic_cast<Joined*>(&above)) session_.follow(joined->session_);
}

void Joined::check(const char* op) {
  checkOpen(op);
  const int lost = session_.deadPeer();
  if (lost >= 0) {
    session_.end(ErrorCode::peerLost, lost, op,
                 "rank " + std::to_string(lost) + " was lost: its process ended");
  }
}

void Joined::close() {
  if (closed_.exchange(true)) return;
  session_.markLeft();
}

std::unique_ptr<Communicator> join(const JoinOptions& options) {
  checkPlace(options);
  return std::make_unique<Joined>(options, meetOthers(options, Deadline::in(options.timeoutMs)));
}

std::unique_ptr<Wire> joinWire(const JoinOptions& options) {
  checkPlace(options);
  JoinOptions own = options;
  own.name += "/wire";
  return std::make_unique<ShmWire>(meetForWire(own, Deadline::in(options.timeoutMs)), options.rank);
}

// ---- the ways a call's data goes once its ranks meet: announced, in place, or staged

// The announcement carries the data: one rendezvous, and every rank computes its own result. The
// payload stays untouched until this rank's next call but one, when all others are done with it.
void Joined::oneShot(const Shape& shape, const Buffers& buffers, const Neighborhood* own,
                     std::size_t room, CallTimeout& callTimeout) {
  static_assert(neighborRowBytes(kMaxRanks) + kMostOneShotBytes <= Segment::kOneShotBytes);
  const std::size_t block = shape.count * sizeOf(shape.dtype);
  const std::size_t blocks = inBlocks(shape, size(), rank());
  const bool styled = room >= StagingStyles::kFewestBytes;
  StagingWork work = styled ? styles_.plan(shape, room, kOneShotWays) : StagingWork();
  const std::size_t row = own != nullptr ? neighborRowBytes(size()) : 0;
  const std::size_t whole = row + room;
  if (own != nullptr) writeNeighborRow(session_.nextPayload(whole), *own, size());
  if (blocks * block > 0) {
    void* const dst[] = {session_.nextPayload(whole) + row};
    work.timed(work.first(),
               [&] { copyMany(dst, buffers.in[0], blocks * block, work.first() == kStreaming); });
  }
  const std::uint32_t call = session_.meetWithPayload(shape, callTimeout);
  if (styled) styles_.met(shape, room, kOneShotWays, call);
  std::vector<WeightRow> weights;
  if (own != nullptr) {
    weights = resolveNeighborRows(size(), [&](int r) { return session_.payload(r, call, whole); });
  }
  if (shape.count == 0 || outBlocks(shape, size(), rank()) == 0) return styles_.spent(work);
  for (int r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    in_[at] = {r == rank() ? static_cast<const std::byte*>(buffers.in[0])
                           : session_.payload(r, call, whole) + row,
               shape.count, 0};
    out_[at] = {};
  }
  out_[static_cast<std::size_t>(rank())] = {static_cast<std::byte*>(buffers.out[0]), shape.count,
                                            0};
  work.timed(work.first(), [&] { runDirect({shape, in_, out_, weights}, 0, shape.count); });
  styles_.spent(work);
}

// False if a buffer of the call cannot be mapped: all ranks see the same references and agree.
bool Joined::direct(const Shape& shape, std::uint32_t call, std::span<const WeightRow> weights,
                    CallTimeout& callTimeout) {
  for (int r = 0; r < size(); ++r) {
    const BufferRef* refs = session_.refs(r, call);
    if (refs[0].region == BufferRef::kPrivate || refs[1].region == BufferRef::kPrivate)
      return false;
  }
  auto views = [&]() -> DirectCall {
    bool inPlace = true;
    try {
      for (int r = 0; r < size(); ++r) {
        const auto at = static_cast<std::size_t>(r);
        const BufferRef* refs = session_.refs(r, call);
        in_[at] = {regions_.resolve(refs[0]), shape.count, 0};
        out_[at] = {regions_.resolve(refs[1]), shape.count, 0};
        inPlace = inPlace && in_[at].base == out_[at].base;
      }
    } catch (const Error& error) {
      session_.end(error.code, rank(), nameOf(shape.kind), error.what());
    }
    return {shape, in_, out_, weights, resultStores(shape, size(), inPlace)};
  };
  runSharedDirect(session_, shape, views, ++directCalls_, callTimeout);
  return true;
}

void Joined::stage(const StagedCall& call, std::size_t bytes, std::uint32_t number,
                   CallTimeout& callTimeout) {
  StagingWork work;
  if (staged_.warm) {
    const int ways = waysOf(session_.segment(), call.shape);
    const auto probed = static_cast<float>(probedElements(session_.segment(), call.shape));
    work = styles_.plan(call.shape, bytes, ways);
    styles_.met(call.shape, bytes, ways, number, probed / static_cast<float>(call.shape.count));
  }
  runStaged(session_, call, work, callTimeout, staged_);
  styles_.spent(work);
}

}  // namespace gradlink::shm
