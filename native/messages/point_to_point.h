// Point-to-point messages. A short one goes with its envelope, and its send returns at once. A long
// one waits until its receiver has answered, so a length mismatch is an error on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/communicator.h"
#include "core/envelope.h"
#include "messages/rank_link.h"

namespace gradlink::messages {

/// Messages up to this size are sent without waiting for their receive.
inline constexpr std::size_t kEagerBytes = 8 << 10;

class Messages {
 public:
  explicit Messages(Link& link) : link_(link) {}

  void send(const void* data, std::size_t count, DType, int destination, int tag, Wait& wait);
  Received receive(void* data, std::size_t count, DType, int source, int tag, Wait& wait,
                   const CopyIn* copyIn = nullptr);

  bool idle();

 private:
  /// A short message that MPI has not sent yet.
  struct Outgoing {
    RequestHandle request;
    std::unique_ptr<std::byte[]> bytes;
  };
  void sweep();
  bool take(Unexpected& message, const Wanted& wanted, const CopyIn* copyIn, Wait& wait,
            Received& received);
  /// Sets aside the next message of this source; false if there is none.
  bool fetch(int source);

  Link& link_;
  std::deque<Unexpected> unexpected_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace gradlink::messages
