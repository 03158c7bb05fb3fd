#include "core/one_rank.h"

#include <string>

#include "core/error.h"

namespace gradlink {

void OneRank::checkBuffers(const Shape& shape, const Buffers& buffers) const {
  checkShape(shape, size());
  if (buffers.in.size() != 1 || buffers.out.size() != 1) {
    throw misuse(nameOf(shape.kind), "expected one input and one output, for the one rank held");
  }
  checkPointers(shape, size(), rank_, buffers.in[0], buffers.out[0]);
}

const Neighborhood& OneRank::ownNeighborhood(std::span<const Neighborhood> neighborhoods) const {
  if (neighborhoods.size() != 1) {
    throw misuse(nameOf(Kind::neighborAllReduce),
                 "expected one neighborhood, for the one rank held, got " +
                     std::to_string(neighborhoods.size()));
  }
  checkNeighborhood(neighborhoods[0], rank_, size());
  return neighborhoods[0];
}

Message& OneRank::ownMessage(const Call& call) const {
  if (call.messages.size() != 1) {
    throw misuse(call.op(), "expected one message of the one rank held, got " +
                                std::to_string(call.messages.size()));
  }
  Message& message = call.messages[0];
  if (message.sends || message.peer != kAnySource) checkPeer(call.op(), message.peer, size());
  return message;
}

}  // namespace gradlink
