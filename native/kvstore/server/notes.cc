// A server's entries in a ServerTrace.
#include "kvstore/server/loop.h"
#include "kvstore/server/shard.h"

namespace gradlink::dist {

void ServerLoop::note(ServerTrace& trace, const WireMessage& message) const {
  const Header header = headerOf(message);
  // Invalid messages are refused when carried out.
  if (header.type >= MessageType::value) return;
  const double now = ServerTrace::now();
  ServerTrace::Event event{.begin = now, .end = now, .bytes = message.bytes};
  event.worker = message.source;
  event.name = static_cast<std::uint8_t>(ServerTrace::receive + static_cast<int>(header.type));
  const bool ofShard = header.type >= MessageType::init && header.type <= MessageType::pullRows;
  if (ofShard && header.shard < shards_.size() && shards_[header.shard] != nullptr) {
    event.key = shards_[header.shard]->traceKey();
  }
  trace.add(event);
}

StepNote ServerShard::noteStep(std::span<const Batch> batches, std::size_t firstPiece) const {
  ServerTrace* const trace = context_.tracing();
  ServerTrace::Event about{.key = traceKey_, .lane = merger_.lane()};
  for (std::size_t p = 0; trace != nullptr && p < batches.size(); ++p) {
    const ShardPiece& piece = pieces_[firstPiece + p];
    for (const std::size_t i : batches[p]) about.bytes += piece.held[i].bytes;
    about.pushes = static_cast<std::uint32_t>(batches[p].size());
    about.worker = about.pushes == 1 ? piece.held[batches[p].front()].worker : ServerTrace::kNobody;
  }
  return {trace, merger_, about, static_cast<bool>(context_.updater)};
}

void ServerShard::noteAnswer(ServerTrace& trace, double begin, int worker,
                             std::size_t bytes) const {
  trace.add({.begin = begin,
             .end = ServerTrace::now(),
             .bytes = bytes,
             .key = traceKey_,
             .worker = worker,
             .lane = merger_.lane(),
             .name = ServerTrace::answer});
}

}  // namespace gradlink::dist
