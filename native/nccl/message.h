// Point-to-point messages that measuring tools plan, instead of a collective.
#pragma once

#include <cstddef>
#include <vector>

namespace gradlink {

/// `count` elements from one rank's array to another's.
struct PlannedMessage {
  int from;
  int to;
  std::size_t count;
  /// In the sender's input, or in its output if it forwards.
  std::size_t source = 0;
  bool ofOutput = false;
  std::size_t target = 0;
  /// A rank's own part: a local copy.
  bool isCopy = false;
};

/// All ranks' messages by step: a step's messages are concurrent, and steps follow each other.
using MessageSteps = std::vector<std::vector<PlannedMessage>>;

}  // namespace gradlink
