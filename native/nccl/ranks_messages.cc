// Messages between ranks.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "nccl/ranks.h"

namespace gradlink::nccl {

void Ranks::checkMessage(const char* op, DType dtype, int peer, int tag) const {
  needOneRank(op);
  needMet(op);
  checkType(op, dtype, false);
  if (tag != 0) {
    throw unsupported(op, "NCCL's messages have no tags; expected 0, got " + std::to_string(tag));
  }
  if (peer == kAnySource) {
    throw unsupported(op, "NCCL cannot receive from any source; name the rank");
  }
  checkPeer(op, peer, size_);
  if (peer == ranks_.front()) {
    throw unsupported(op, "NCCL's send waits for the receive, which a rank cannot make of itself");
  }
}

void Ranks::send(const void* data, std::size_t count, DType dtype, int destination, int tag,
                 const CallOptions& options) {
  guarded("send", options, [&](const Watch& watch) {
    checkMessage(watch.op, dtype, destination, tag);
    if (count == 0) return;
    core_->comms.group(watch, [&](std::size_t i) {
      return library_.send(data, count, abi::movedAs(dtype), destination,
                           core_->comms.members()[i]->handle, streams_[i]->handle());
    });
    core_->comms.finish(watch, streams_);
  });
}

Received Ranks::receive(void* data, std::size_t count, DType dtype, int source, int tag,
                        const CallOptions& options) {
  guarded("receive", options, [&](const Watch& watch) {
    checkMessage(watch.op, dtype, source, tag);
    if (count == 0) return;
    core_->comms.group(watch, [&](std::size_t i) {
      return library_.recv(data, count, abi::movedAs(dtype), source,
                           core_->comms.members()[i]->handle, streams_[i]->handle());
    });
    core_->comms.finish(watch, streams_);
  });
  return {source, count};
}

// A message whose other end is held here too must be among them: nobody else brings it.
void Ranks::checkHeldMessages(const char* op, std::span<const HeldMessage> messages) const {
  const auto holds = [&](int rank) {
    return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end();
  };
  std::map<std::pair<int, int>, std::vector<const HeldMessage*>> sent;
  std::map<std::pair<int, int>, std::vector<const HeldMessage*>> awaited;
  for (const HeldMessage& one : messages) {
    if (one.held >= ranks_.size()) throw misuse(op, "a message of a rank that is not held here");
    checkType(op, one.dtype, false);
    checkPeer(op, one.peer, size_);
    const int rank = ranks_[one.held];
    if (one.peer == rank) {
      throw unsupported(op, "rank " + std::to_string(rank) + " is both ends of a message");
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
                            std::to_string(ends.second) + ", which this process both holds: ";
    if (sends.size() != receives.size()) {
      throw misuse(op, way + std::to_string(sends.size()) + " sent and " +
                           std::to_string(receives.size()) +
                           " received. Give both ends in one sendReceive");
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      if (sends[i]->count == receives[i]->count && sends[i]->dtype == receives[i]->dtype) continue;
      const auto brings = [](const HeldMessage& one) {
        return std::to_string(one.count) + " " + nameOf(one.dtype);
      };
      throw misuse(op, way + brings(*sends[i]) + " sent and " + brings(*receives[i]) +
                           " received. Both ends must be of one length and type");
    }
  }
}

void Ranks::messages(const char* op, std::span<const HeldMessage> messages,
                     const CallOptions& options) {
  guarded(op, options, [&](const Watch& watch) {
    needMet(op);
    checkHeldMessages(op, messages);
    core_->comms.group(watch, [&](std::size_t i) {
      abi::CommHandle comm = core_->comms.members()[i]->handle;
      cuda::StreamHandle stream = streams_[i]->handle();
      abi::Result result = abi::kSuccess;
      for (const HeldMessage& one : messages) {
        if (one.held != i || one.count == 0 || isFailure(result)) continue;
        const int type = abi::movedAs(one.dtype);
        result = one.sends ? library_.send(one.data, one.count, type, one.peer, comm, stream)
                           : library_.recv(one.data, one.count, type, one.peer, comm, stream);
      }
      return result;
    });
    core_->comms.finish(watch, streams_);
  });
}

}  // namespace gradlink::nccl
