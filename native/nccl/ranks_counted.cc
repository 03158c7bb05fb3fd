// Collectives with counts: one group of messages, or of a sum to each rank.
#include "nccl/ranks.h"

namespace gradlink::nccl {

void Ranks::counted(CountedCall& call, const CallOptions& options) {
  guarded(nameOf(call.kind), options, [&](const Watch& watch) {
    checkType(watch.op, call.dtype, call.reduces());
    if (call.parts.size() != ranks_.size()) {
      throw misuse(watch.op, "expected " + std::to_string(ranks_.size()) +
                                 " parts, one for each rank held, got " +
                                 std::to_string(call.parts.size()));
    }
    const CountedTable table(
        call, ranks_, size_,
        [&](const void* own, void* all, std::size_t bytes) { exchange(own, all, bytes, watch); });
    table.place(call, ranks_);
    runCounted(call, table, watch);
  });
}

void Ranks::runCounted(const CountedCall& call, const CountedTable& table, const Watch& watch) {
  const std::size_t element = sizeOf(call.dtype);
  const int moved = abi::movedAs(call.dtype);
  meet(watch);
  core_->comms.group(watch, [&](std::size_t i) {
    abi::CommHandle comm = core_->comms.members()[i]->handle;
    cuda::StreamHandle stream = streams_[i]->handle();
    const int rank = ranks_[i];
    const auto* const in = static_cast<const char*>(call.parts[i].in);
    auto* const out = static_cast<char*>(call.parts[i].out);
    abi::Result result = abi::kSuccess;
    for (int peer = 0; peer < size_; ++peer) {
      const char* const given = in + table.inBegin(rank, peer) * element;
      if (call.reduces()) {
        if (table.total(peer) == 0 || isFailure(result)) continue;
        result =
            library_.reduce(given, peer == rank ? out : nullptr, table.total(peer),
                            abi::typeOf(call.dtype), abi::opOf(call.op, size_), peer, comm, stream);
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
