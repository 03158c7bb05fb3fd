#include "nccl/ranks.h"

#include <algorithm>
#include <utility>

#include "core/agreement.h"
#include "core/error.h"
#include "nccl/queue.h"
#include "nccl/scaled_ops.h"

namespace gradlink::nccl {
namespace {

/// NCCL has no float8 sums for older GPUs.
constexpr int kFloat8SumMajor = 9;

/// The memory for exchanging ids, neighbors' weights or counts.
std::size_t exchangedBytes(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return (ranks + 1) *
         std::max({sizeof(UniqueId), neighborRowBytes(size), CountedTable::bytesOf(size)});
}

}  // namespace

Ranks::Ranks(HeldRanks held, std::span<const UniqueId> ids, const Options& options)
    : library_(Library::get()),
      ranks_(std::move(held.ranks)),
      devices_(std::move(held.devices)),
      size_(held.size),
      control_(std::move(held.control)),
      processes_(std::move(held.processes)),
      met_(!ids.empty()),
      options_(options),
      core_(std::make_shared<Core>(ranks_, devices_, size_)) {
  // Belongs to the call that makes this communicator.
  const std::atomic<bool>* cancelled = std::exchange(options_.cancelled, nullptr);
  const Watch watch{"join", Deadline::in(options.timeoutMs), [this, cancelled] {
                      if (cancelled != nullptr && cancelled->load()) {
                        throw Error(ErrorCode::closed, "join: given up").withOp("join");
                      }
                      if (control_) control_->check("join");
                    }};
  try {
    if (!control_ && !holdsAll()) {
      exchanged_ = cuda::DeviceMemory(*devices_.front(), exchangedBytes(size_));
    }
    if (met_) core_->comms.open(ids, watch);
  } catch (const Error& error) {
    if (control_) control_->abort(error.what());
    throw;
  }
  for (const auto& member : core_->comms.members()) streams_.push_back(&member->stream);
}

Ranks::~Ranks() {
  close();
  // Registered memory that still exists keeps the core alive, and needs no stream.
  const SweepAfter sweep(*core_);
  const std::lock_guard lock(core_->calls);
  core_->comms.dissolve();
}

// All ranks have agreed on the call or make it anyway. A missing rank is named while the ids are
// shared, and no work is queued here that an allocation could wait for.
void Ranks::meet(const Watch& watch) {
  if (met_) return;
  core_->comms.open(shareIds(watch), watch);
  met_ = true;
}

void Ranks::needMet(const char* op) const {
  if (met_) return;
  throw unsupported(op, "the ranks of this part meet in their first collective: call one first");
}

// ---- how a call runs

double Ranks::timeoutOf(const CallOptions& options) const {
  return options.timeoutMs < 0 ? options_.timeoutMs : options.timeoutMs;
}

void Ranks::checkOpen(const char* op) const {
  if (closed_.load()) {
    throw Error(ErrorCode::closed, std::string(op) + ": the communicator is closed").withOp(op);
  }
  failure_.check(op);
}

void Ranks::look(const char* op) {
  failure_.check(op);
  if (control_) control_->check(op);
}

void Ranks::abortUnlessBusy() {
  // Either this thread, having released the mutex, sees the failure; or the reporter locks it.
  if (!failure_.hasFailed()) return;
  const SweepAfter sweep(*core_);
  const std::unique_lock lock(core_->calls, std::try_to_lock);
  if (!lock.owns_lock()) return;
  core_->comms.abort();
}

void Ranks::checkBuffers(const Shape& shape, const Buffers& buffers) const {
  checkShape(shape, size_, true);
  checkType(nameOf(shape.kind), shape.dtype, hasOp(shape.kind));
  const std::size_t held = ranks_.size();
  if (buffers.in.size() != held || buffers.out.size() != held) {
    throw misuse(nameOf(shape.kind), "expected " + std::to_string(held) +
                                         " inputs and outputs, one for each rank held, got " +
                                         std::to_string(buffers.in.size()) + " and " +
                                         std::to_string(buffers.out.size()));
  }
  for (std::size_t i = 0; i < held; ++i) {
    checkPointers(shape, size_, ranks_[i], buffers.in[i], buffers.out[i]);
  }
}

bool Ranks::takesType(DType dtype, bool adds) const {
  if (!isOnGpus(dtype)) return false;
  if (!isFloat8(dtype)) return true;
  return library_.info.float8 &&
         (!adds || std::ranges::all_of(devices_, [](const cuda::Device* device) {
           return device->capabilityMajor() >= kFloat8SumMajor;
         }));
}

void Ranks::checkType(const char* op, DType dtype, bool adds) const {
  if (takesType(dtype, adds)) return;
  if (!isOnGpus(dtype)) {
    throw unsupported(
        op, std::string("NCCL has no ") + nameOf(dtype) + ": use int32, or ranks in host memory");
  }
  if (!library_.info.float8) {
    throw unsupported(op, "NCCL " + versionText(library_.info.version) + " has no " +
                              nameOf(dtype) + " (since 2.24)");
  }
  for (const cuda::Device* device : devices_) {
    if (device->capabilityMajor() >= kFloat8SumMajor) continue;
    throw unsupported(op, device->label() + " cannot add " + nameOf(dtype) +
                              ": compute capability 9.0 or above is needed");
  }
}

void Ranks::checkLaunch(const Launch& launch) const {
  const Shape& shape = launch.shape;
  const char* op = nameOf(shape.kind);
  if (shape.kind >= Kind::barrier) {
    throw misuse(op, "is not a collective that can be launched alone");
  }
  checkBuffers(shape, launch.buffers);
  checkPlaces(launch);
  if (launch.scales.empty()) return;
  if (library_.redOpCreatePreMulSum == nullptr) {
    throw unsupported(op, "NCCL " + versionText(library_.info.version) +
                              " has no scaled sums (ncclRedOpCreatePreMulSum, since 2.11)");
  }
  if (launch.scales.size() != ranks_.size() || !hasOp(shape.kind) || shape.op != ReduceOp::sum ||
      !isFloat(shape.dtype)) {
    throw misuse(op, "scales are for sums of float types, one for each of the " +
                         std::to_string(ranks_.size()) + " ranks held");
  }
}

/// Checks the ranks held here; other processes send theirs in the agreement.
void Ranks::checkPlaces(const Launch& launch) const {
  const Buffers& buffers = launch.buffers;
  const Kind kind = launch.shape.kind;
  const RegisteredPieces& registered = core_->registered;
  const RegisteredPlaces first = registered.placesOf(0, kind, buffers.in[0], buffers.out[0]);
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    if (registered.placesOf(i, kind, buffers.in[i], buffers.out[i]) == first) continue;
    throw misuse(nameOf(kind), elsewhereText(ranks_[0], ranks_[i]));
  }
}

void Ranks::reserve(std::span<const Launch> launches, std::span<cuda::Stream* const> streams) {
  try {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      for (const Launch& each : launches) {
        reserveFor(*core_->comms.members()[i], size_, each.shape, streams[i]->handle());
      }
    }
  } catch (Error& error) {
    error.usable = false;  // the others wait for this rank's part
    throw;
  }
}

void Ranks::launch(std::span<const Launch> launches, std::span<cuda::Stream* const> streams,
                   const Watch& watch) {
  meet(watch);
  Comms& comms = core_->comms;
  const ScaledOps scaled(library_, comms, launches);
  comms.group(watch, [&](std::size_t i) {
    for (std::size_t j = 0; j < launches.size(); ++j) {
      const Launch& each = launches[j];
      const RankCall part{each.shape, each.buffers.in[i], each.buffers.out[i], scaled.op(j, i),
                          streams[i]->handle()};
      const abi::Result result = queuePart(library_, *comms.members()[i], size_, part);
      if (isFailure(result)) return result;
    }
    return abi::kSuccess;
  });
}

void Ranks::runTogether(std::span<const Launch> launches, const CallOptions& options) {
  const char* op = launches.empty() ? "run" : nameOf(launches.front().shape.kind);
  guarded(op, options, [&](const Watch& watch) {
    for (const Launch& each : launches) checkLaunch(each);
    reserve(launches, streams_);
    agreeOnce(launches, watch);
    const auto inFlight = core_->comms.inFlight(watch);
    launch(launches, streams_, watch);
    core_->comms.finish(watch, streams_);
  });
}

void Ranks::checkStreams(const char* op, std::span<cuda::Stream* const> streams) const {
  if (streams.size() == ranks_.size()) return;
  throw misuse(op, "expected " + std::to_string(ranks_.size()) +
                       " streams, one for each rank held, got " + std::to_string(streams.size()));
}

void Ranks::enqueue(std::span<const Launch> launches, std::span<cuda::Stream* const> streams,
                    const CallOptions& options) {
  const char* op = launches.empty() ? "enqueue" : nameOf(launches.front().shape.kind);
  guarded(op, options, [&](const Watch& watch) {
    checkStreams(op, streams);
    for (const Launch& each : launches) checkLaunch(each);
    reserve(launches, streams);
    launch(launches, streams, watch);
  });
}

void Ranks::check(const char* op) {
  guarded(op, {}, [&](const Watch& watch) {
    core_->comms.check(op);
    watch.look();
  });
}

void Ranks::run(const Call& call) {
  const Kind kind = call.shape.kind;
  if (isCounted(kind)) return counted(call);
  if (isMessage(kind)) return transfer(call);
  if (kind == Kind::neighborAllReduce) return neighborAllReduce(call);
  if (kind == Kind::neighborAllGather) return neighborAllGather(call);
  if (kind == Kind::pairGossip) return pairGossip(call);
  if (kind == Kind::barrier) return barrier(call.options);
  const Launch launch{call.shape, call.buffers, call.scales};
  runTogether({&launch, 1}, call.options);
}

// ---- held ranks

void Ranks::needOneRank(const char* op) const {
  if (ranks_.size() == 1) return;
  throw unsupported(
      op, holdsAll() ? "this communicator holds all " + std::to_string(size_) +
                           " ranks at once; this is for communicators of one rank each (see its "
                           "openRanks())"
                     : "this communicator holds " + listOfRanks(ranks_) +
                           "; this is for communicators of one rank each: take a process for each "
                           "GPU");
}

std::string Ranks::whoHolds(int rank) const {
  return processes_ ? processes_->nameOf(processes_->holder(rank)) : "rank " + std::to_string(rank);
}

// ---- memory and lifetime

void* Ranks::allocShared(std::size_t) {
  throw unsupported("allocShared",
                    "it gives host memory that all ranks map, and NCCL moves device memory; use a "
                    "buffer on each rank's GPU");
}

void Ranks::abort(const std::string& reason) {
  if (closed_.load()) return;
  Error error(ErrorCode::aborted, "the communicator was aborted" +
                                      (holdsAll() ? std::string() : " by " + ownName()) + ": " +
                                      reason);
  if (!holdsAll()) error.withRank(ranks_.front());
  failure_.failAll(error, false);
  if (control_) control_->abort(reason);
  abortUnlessBusy();
}

void Ranks::leave() {
  if (closed_.load()) return;
  failure_.failAll(
      Error(ErrorCode::closed, ownName() + " has left the communicator").withRank(ranks_.front()),
      false);
  if (control_) control_->leave();
  abortUnlessBusy();
}

void Ranks::close() {
  if (closed_.exchange(true)) return;
  const SweepAfter sweep(*core_);
  const std::lock_guard lock(core_->calls);
  const Deadline deadline = Deadline::in(options_.timeoutMs);
  if (failure_.there()) {
    core_->comms.abort();
  } else {
    core_->comms.close(deadline);
  }
  neighbors_.reset();
  windows_.close();
  if (control_) control_->close();
}

// ---- collectives with counts: one group of messages, or a sum for each rank

void Ranks::counted(const Call& call) {
  guarded(call.op(), call.options, [&](const Watch& watch) {
    checkType(watch.op, call.shape.dtype, hasOp(call.shape.kind));
    const std::vector<CountedPart>& parts = call.counted->parts;
    if (parts.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " parts, one for each rank held, got " +
                                 std::to_string(parts.size()));
    }
    const CountedTable table(call, ranks_, size_, exchangeWithin(watch));
    table.place(call, ranks_);
    runCounted(call, table, watch);
  });
}

void Ranks::runCounted(const Call& call, const CountedTable& table, const Watch& watch) {
  const std::size_t element = sizeOf(call.shape.dtype);
  const int moved = abi::movedAs(call.shape.dtype);
  meet(watch);
  const auto inFlight = core_->comms.inFlight(watch);
  core_->comms.group(watch, [&](std::size_t i) {
    abi::CommHandle comm = core_->comms.members()[i]->handle;
    cuda::StreamHandle stream = streams_[i]->handle();
    const int rank = ranks_[i];
    const auto* const in = static_cast<const char*>(call.counted->parts[i].in);
    auto* const out = static_cast<char*>(call.counted->parts[i].out);
    abi::Result result = abi::kSuccess;
    for (int peer = 0; peer < size_; ++peer) {
      const char* const given = in + table.inBegin(rank, peer) * element;
      if (hasOp(call.shape.kind)) {
        if (table.total(peer) == 0 || isFailure(result)) continue;
        result = library_.reduce(given, peer == rank ? out : nullptr, table.total(peer),
                                 abi::typeOf(call.shape.dtype), abi::opOf(call.shape.op, size_),
                                 peer, comm, stream);
        continue;
      }
      const std::size_t sent = table.sent(rank, peer);
      const std::size_t awaited = table.sent(peer, rank);
      if (sent > 0 && !isFailure(result)) {
        result = library_.send(given, sent, moved, peer, comm, stream);
      }
      if (awaited > 0 && !isFailure(result)) {
        result = library_.recv(out + table.outBegin(peer, rank) * element, awaited, moved, peer,
                               comm, stream);
      }
    }
    return result;
  });
  core_->comms.finish(watch, streams_);
}

}  // namespace gradlink::nccl
