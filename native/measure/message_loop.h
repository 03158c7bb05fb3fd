// Times messages between two ranks and checks them, natively: no JavaScript in the timed region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/communicator.h"

namespace gradlink::measure {

/// Both ranks must give the same values, except `peer` and `first`.
struct MessageOptions {
  int peer = 0;
  /// Exactly one of the two: it sends the window and takes the time.
  bool first = false;
  std::size_t bytes = 0;
  /// Messages of a sample before the peer answers: 1 with an answer of the same size is a
  /// ping-pong, many with a short one measure bandwidth.
  int window = 1;
  std::size_t answerBytes = 0;
  int warmup = 10;
  int samples = 100;
  /// Check the first messages, before the timing, and the last timed ones.
  bool verify = true;
  /// Of each call; negative: the communicator's own.
  double timeoutMs = -1;
};

struct MessageResult {
  /// For each sample, from the first send to the answer; empty on the other rank.
  std::vector<double> seconds;
  /// Wrong bytes received by this rank; 0 without `verify`.
  std::uint64_t wrong = 0;
};

/// Blocks; only the two ranks call it. Throws the communicator's errors, invalidArgument for counts
/// below 1 and an invalid peer, and outOfMemory.
MessageResult timeMessages(Communicator&, const MessageOptions&);

}  // namespace gradlink::measure
