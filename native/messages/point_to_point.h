// Point-to-point messages of a communicator. A short one goes with its envelope, and its send
// returns without its receive; a long one waits until its receiver has answered, so that one that
// does not fit is an error on both sides.
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

/// Messages of up to this many bytes are sent without waiting for their receive.
inline constexpr std::size_t kEagerBytes = 8 << 10;

class Messages {
 public:
  explicit Messages(Link& link) : link_(link) {}

  void send(const void* data, std::size_t count, DType, int destination, int tag, Wait& wait);
  Received receive(void* data, std::size_t count, DType, int source, int tag, Wait& wait,
                   const CopyIn* copyIn = nullptr);

  /// True when no send is on its way any more.
  bool idle();

 private:
  /// A short message that MPI has not taken yet.
  struct Outgoing {
    RequestHandle request;
    std::unique_ptr<std::byte[]> bytes;
  };
  void sweep();
  bool take(Unexpected& message, const Wanted& wanted, const CopyIn* copyIn, Wait& wait,
            Received& received);
  /// The next message of this source, set aside; false when there is none.
  bool fetch(int source);

  Link& link_;
  std::deque<Unexpected> unexpected_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace gradlink::messages
