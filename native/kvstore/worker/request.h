// A request to every server, such as a barrier, saving or a setting. It begins when all earlier
// operations are done, and later ones wait for it.
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

/// Distinguishes the numbers of requests from those of transfers.
inline constexpr std::uint64_t kRequestBit = std::uint64_t{1} << 63;
/// Asks whether a server is there; the answer is no progress.
inline constexpr std::uint64_t kPresenceRequest = kRequestBit;

struct DistRequest {
  struct Question {
    MessageType type;
    std::uint8_t flags = 0;
    std::vector<std::uint8_t> payload;
    std::int32_t code = 0;
  };

  /// For errors and reports: "barrier", "saveOptimizerStates" ...
  std::string name;
  /// Called first: the question for each server. May be null. An exception ends the request.
  std::function<std::vector<Question>(DistRequest&)> ask;
  /// Set by ask(): the ticket's error, although the servers are asked.
  std::exception_ptr failure;
  /// Called for an answer with its payload, valid during the call. May be null.
  std::function<void(std::size_t server, std::span<const std::uint8_t>)> answer;
  /// Called after all answers; an exception is the ticket's error. May be null.
  std::function<void()> finish;
  /// Whether it reports failures of pushes that were done; else the key's next operation does.
  bool reportsFailures = false;
  /// Null if nobody waits: a failure then ends the store.
  std::shared_ptr<Ticket> ticket;
};

}  // namespace gradlink::dist
