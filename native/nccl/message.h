// Messages that a call of the tools is made of, where no collective is it.
#pragma once

#include <cstddef>
#include <vector>

namespace gradlink {

/// `count` elements from one rank's array to another's.
struct PlannedMessage {
  int from;
  int to;
  std::size_t count;
  /// Where they lie: in the sender's input, or its output where it passes on what came.
  std::size_t source = 0;
  bool ofOutput = false;
  /// In the receiver's output.
  std::size_t target = 0;
  /// A rank's own part, which is copied and not sent.
  bool isCopy = false;
};

/// All ranks' messages: those of a step go together, and a step begins when the one before is over.
using MessageSteps = std::vector<std::vector<PlannedMessage>>;

}  // namespace gradlink
