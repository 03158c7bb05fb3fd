// Messages between ranks.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {

// If this process holds both ends of a message, both must be in the call.
void Ranks::checkMessages(const Call& call) const {
  const char* const op = call.op();
  const auto holds = [&](int rank) {
    return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end();
  };
  std::map<std::pair<int, int>, std::vector<const Message*>> sent;
  std::map<std::pair<int, int>, std::vector<const Message*>> awaited;
  for (const Message& one : call.messages) {
    if (one.held >= ranks_.size()) throw misuse(op, "a message of a rank that is not held here");
    checkType(op, one.dtype, false);
    if (one.tag != 0) {
      throw unsupported(op,
                        "NCCL's messages have no tags; expected 0, got " + std::to_string(one.tag));
    }
    if (one.peer == kAnySource) {
      throw unsupported(op, "NCCL cannot receive from any source; name the rank");
    }
    checkPeer(op, one.peer, size_);
    const int rank = ranks_[one.held];
    if (one.peer == rank) {
      throw unsupported(
          op, "rank " + std::to_string(rank) +
                  " is both ends of a message: NCCL's send would wait for a receive of itself");
    }
    if (!holds(one.peer)) continue;
    if (one.sends) {
      sent[{rank, one.peer}].push_back(&one);
      awaited[{rank, one.peer}];
    } else {
      awaited[{one.peer, rank}].push_back(&one);
    }
  }
  for (const auto& [ends, receives] : awaited) {
    const auto& sends = sent[ends];
    const std::string way = "from rank " + std::to_string(ends.first) + " to rank " +
                            std::to_string(ends.second) + ", which are both of this process: ";
    if (sends.size() != receives.size()) {
      throw misuse(op, way + std::to_string(sends.size()) + " sent and " +
                           std::to_string(receives.size()) +
                           " received. Give both ends in one sendReceive");
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (sends[i]->count == receives[i]->count && sends[i]->dtype == receives[i]->dtype) continue;
      const auto brings = [](const Message& one) {
        return std::to_string(one.count) + " " + nameOf(one.dtype);
      };
      throw misuse(op, way + brings(*sends[i]) + " sent and " + brings(*receives[i]) +
                           " received. Both ends must be of one length and type");
    }
  }
}

void Ranks::transfer(const Call& call) {
  guarded(call.op(), call.options, [&](const Watch& watch) {
    needMet(watch.op);
    checkMessages(call);
    const auto inFlight = core_->comms.inFlight(watch);
    core_->comms.group(watch, [&](std::size_t i) {
      abi::CommHandle comm = core_->comms.members()[i]->handle;
      cuda::StreamHandle stream = streams_[i]->handle();
      abi::Result result = abi::kSuccess;
      for (const Message& one : call.messages) {
        if (one.held != i || one.count == 0 || isFailure(result)) continue;
        const int type = abi::movedAs(one.dtype);
        result = one.sends ? library_.send(one.data, one.count, type, one.peer, comm, stream)
                           : library_.recv(one.data, one.count, type, one.peer, comm, stream);
      }
      return result;
    });
    core_->comms.finish(watch, streams_);
    for (Message& one : call.messages) one.got = {one.peer, one.count};
  });
}

}  // namespace gradlink::nccl
