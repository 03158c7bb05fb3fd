// Gathering from some ranks and averaging of pairs: one group of messages for all held ranks.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/neighbors.h"
#include "cuda/kernel_module.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {
namespace {

/// Tags tell several pairs of the same two processes apart.
int tagOf(int rank, int peer, int size) {
  const auto lower = static_cast<std::int64_t>(std::min(rank, peer));
  return static_cast<int>((lower * size + std::max(rank, peer)) %
                          std::numeric_limits<std::int32_t>::max());
}

}  // namespace

void Ranks::neighborAllGather(const Call& call) {
  guarded(call.op(), call.options, [&](const Watch& watch) {
    const DType dtype = call.shape.dtype;
    checkType(watch.op, dtype, false);
    if (call.gathers.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " lists, one for each rank held, got " +
                                 std::to_string(call.gathers.size()));
    }
    neighborTable(call.gathers, size_, dtype, exchangeWithin(watch));
    const int type = abi::movedAs(dtype);
    meet(watch);
    const auto inFlight = core_->comms.inFlight(watch);
    core_->comms.group(watch, [&](std::size_t i) {
      abi::CommHandle comm = core_->comms.members()[i]->handle;
      cuda::StreamHandle stream = streams_[i]->handle();
      const NeighborGather& one = call.gathers[i];
      abi::Result result = abi::kSuccess;
      for (const int to : one.destinations) {
        if (one.count == 0 || isFailure(result)) continue;
        result = library_.send(one.in, one.count, type, to, comm, stream);
      }
      char* next = static_cast<char*>(one.out);
      for (const NeighborBlock& from : one.sources) {
        if (from.count == 0 || isFailure(result)) continue;
        result = library_.recv(next, from.count, type, from.rank, comm, stream);
        next += from.count * sizeOf(dtype);
      }
      return result;
    });
    core_->comms.finish(watch, streams_);
  });
}

bool Ranks::holdsBoth(const char* op, const Gossip& one, std::span<const Gossip> pairs) const {
  const int rank = ranks_[one.held];
  if (std::find(ranks_.begin(), ranks_.end(), one.peer) == ranks_.end()) return false;
  const auto other = std::find_if(pairs.begin(), pairs.end(), [&](const Gossip& candidate) {
    return ranks_[candidate.held] == one.peer;
  });
  const std::string both = "rank " + std::to_string(rank) + " and rank " +
                           std::to_string(one.peer) + ", which are both of this process, ";
  if (other == pairs.end() || other->peer != rank) {
    throw misuse(op, both + "must name each other in one call");
  }
  if (other->count != one.count) {
    throw misuse(op, both + "must bring equally many elements: " + std::to_string(one.count) +
                         " and " + std::to_string(other->count));
  }
  return true;
}

void Ranks::pairGossip(const Call& call) {
  const DType dtype = call.shape.dtype;
  const auto pairs = call.pairs;
  guarded(call.op(), call.options, [&](const Watch& watch) {
    needMet(watch.op);
    checkType(watch.op, dtype, false);
    if (!isFloat(dtype)) {
      throw misuse(watch.op, std::string("weights need a float type, not ") + nameOf(dtype));
    }
    std::vector<const Gossip*> agreed;
    std::vector<Gossip> apart;
    for (const Gossip& one : pairs) {
      if (one.held >= ranks_.size()) throw misuse(watch.op, "a rank that is not held here");
      checkPeer(watch.op, one.peer, size_);
      if (one.peer == ranks_[one.held]) {
        throw unsupported(watch.op,
                          "rank " + std::to_string(one.peer) + " is both ranks of a pair");
      }
      if (holdsBoth(watch.op, one, pairs)) {
        agreed.push_back(&one);
      } else {
        apart.push_back(one);
      }
    }
    // Before the peers continue: their kernels may spin, and an allocation would wait for them.
    if (!neighbors_) neighbors_ = std::make_unique<Neighbors>(core_->comms);
    for (const Gossip& one : pairs) {
      neighbors_->inbox(one.held, *devices_[one.held], one.count * sizeOf(dtype));
    }
    cuda::loadKernels(devices_, {"weighted"});
    const std::optional<Error> differs = agreeInPairs(dtype, apart, agreed, watch);
    runGossip(dtype, agreed, watch);
    if (differs) throw Error(*differs);
  });
}

void Ranks::runGossip(DType dtype, std::span<const Gossip* const> pairs, const Watch& watch) {
  const int type = abi::typeOf(dtype);
  std::vector<const Gossip*> ofMember(ranks_.size(), nullptr);
  for (const Gossip* one : pairs) {
    if (one->count > 0) ofMember[one->held] = one;
  }
  std::vector<char*> inboxes(ranks_.size(), nullptr);
  for (const Gossip* one : pairs) {
    inboxes[one->held] =
        neighbors_->inbox(one->held, *devices_[one->held], one->count * sizeOf(dtype));
  }
  const auto inFlight = core_->comms.inFlight(watch);
  core_->comms.group(watch, [&](std::size_t i) -> abi::Result {
    const Gossip* const one = ofMember[i];
    if (one == nullptr) return abi::kSuccess;
    abi::CommHandle comm = core_->comms.members()[i]->handle;
    const abi::Result sent =
        library_.send(one->in, one->count, type, one->peer, comm, streams_[i]->handle());
    if (isFailure(sent)) return sent;
    return library_.recv(inboxes[i], one->count, type, one->peer, comm, streams_[i]->handle());
  });
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Gossip* const one = ofMember[i];
    if (one == nullptr) continue;
    const void* const from[] = {one->in, inboxes[i]};
    const double weights[] = {one->selfWeight, one->pairWeight};
    cuda::weightedSum(*streams_[i], neighbors_->ring(i), dtype, one->out, from, weights,
                      one->count);
  }
  core_->comms.finish(watch, streams_);
}

std::optional<Error> Ranks::agreeInPairs(DType dtype, std::span<const Gossip> pairs,
                                         std::vector<const Gossip*>& agreed, const Watch& watch) {
  const auto processOf = [&](int rank) { return processes_ ? processes_->holder(rank) : rank; };
  std::optional<Error> differs;
  // Without a control communicator there are no envelopes.
  const auto tell = [&](const auto& message) {
    if (!control_) return;
    try {
      message();
    } catch (const Error& error) {
      Error ours(error.code,
                 std::string(watch.op) + ": while the pair agreed on it: " + error.what());
      // Another pair may have agreed and waits.
      ours.usable = error.usable && pairs.size() == 1;
      throw ours.withRank(error.rank).withOp(watch.op);
    }
  };
  for (const Gossip& one : pairs) {
    tell([&] {
      const std::uint64_t own[] = {one.count, static_cast<std::uint64_t>(dtype)};
      control_->send(own, 2, DType::uint64, processOf(one.peer),
                     tagOf(ranks_[one.held], one.peer, size_), {.timeoutMs = watch.leftMs()});
    });
  }
  for (const Gossip& one : pairs) {
    std::uint64_t theirs[] = {one.count, static_cast<std::uint64_t>(dtype)};
    tell([&] {
      control_->receive(theirs, 2, DType::uint64, processOf(one.peer),
                        tagOf(ranks_[one.held], one.peer, size_), {.timeoutMs = watch.leftMs()});
    });
    if (theirs[0] == one.count && theirs[1] == static_cast<std::uint64_t>(dtype)) {
      agreed.push_back(&one);
      continue;
    }
    if (differs) continue;
    const int rank = ranks_[one.held];
    const auto brings = [](int who, std::uint64_t count, DType type) {
      return "rank " + std::to_string(who) + " brings " + std::to_string(count) + " " +
             nameOf(type);
    };
    const std::string mine = brings(rank, one.count, dtype);
    const std::string other = brings(one.peer, theirs[0], static_cast<DType>(theirs[1]));
    const bool first = rank < one.peer;
    differs = harmless(ErrorCode::mismatch, watch.op,
                       (first ? mine : other) + ", " + (first ? other : mine) +
                           ". Both must bring equally many elements of one type")
                  .withRank(one.peer);
  }
  return differs;
}

}  // namespace gradlink::nccl
