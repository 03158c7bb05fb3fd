// Times messages between two ranks of a communicator and checks what came, natively: no JavaScript
// inside the timed region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/communicator.h"

namespace gradlink::measure {

/// Both ranks must give the same values, except `peer` and `first`.
struct MessageOptions {
  int peer = 0;
  /// Of the two exactly one: it sends the window and takes the time.
  bool first = false;
  std::size_t bytes = 0;
  /// Messages that a sample sends one after the other before the peer answers: 1 with an answer of
  /// the same size is a ping-pong, many with a short one measure bandwidth.
  int window = 1;
  std::size_t answerBytes = 0;
  /// Samples that are not timed.
  int warmup = 10;
  int samples = 100;
  /// Check the first messages, before the timing, and the last timed ones.
  bool verify = true;
  /// Of each call; the communicator's own when negative.
  double timeoutMs = -1;
};

struct MessageResult {
  /// Of each sample, from the first send until the answer has come; nothing on the other rank.
  std::vector<double> seconds;
  /// Bytes that came to this rank and are not what its peer sent; 0 without `verify`.
  std::uint64_t wrong = 0;
};

/// Blocks; the two ranks must call it, the others need not. Throws what the communicator throws,
/// invalidArgument for counts below 1 and a peer that is no other rank, and outOfMemory.
MessageResult timeMessages(Communicator&, const MessageOptions&);

}  // namespace gradlink::measure
