// Something asked of every server at once: what Store calls a barrier, saving, a setting. It begins
// when all operations submitted before are done, and those submitted later wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvstore/protocol/protocol.h"
#include "kvstore/store.h"

namespace gradlink::dist {

/// Requests and transfers number their messages apart.
inline constexpr std::uint64_t kRequestBit = std::uint64_t{1} << 63;
/// Asks whether a server is there: the answer counts for nothing else, for progress neither.
inline constexpr std::uint64_t kPresenceRequest = kRequestBit;

struct DistRequest {
  struct Question {
    MessageType type;
    std::uint8_t flags = 0;
    std::vector<std::uint8_t> payload;
  };

  /// For the store's errors and reports: "barrier", "saveOptimizerStates" ...
  std::string name;
  /// What to ask of each server, in their order; called first. Null: nothing. What it throws is the
  /// ticket's error, and nothing is asked.
  std::function<std::vector<Question>(DistRequest&)> ask;
  /// Set by ask(): the servers are asked even so, and this is the ticket's error.
  std::exception_ptr failure;
  /// An answer with its payload, valid during the call. May be null.
  std::function<void(std::size_t server, std::span<const std::uint8_t>)> answer;
  /// All have answered. What it throws is the ticket's error. May be null.
  std::function<void()> finish;
  /// Whether it tells of a push that failed after it was done; else the key's next operation does.
  bool tellsFailures = false;
  /// Null where nobody waits: a failure then ends the store.
  std::shared_ptr<Ticket> ticket;
};

}  // namespace gradlink::dist
