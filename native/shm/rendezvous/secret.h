// Addresses and proofs that only processes with the job's secret can compute. The system's list of
// sockets is public, but an address reveals nothing of the job or its other names.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "core/sha256.h"
#include "shm/shm.h"

namespace gradlink::shm {

class RendezvousAddress {
 public:
  /// One of the addresses of a rendezvous; see addresses.h.
  RendezvousAddress(const JoinOptions& options, int number);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value_); }
  socklen_t length() const { return length_; }

 private:
  sockaddr_un value_{};
  socklen_t length_ = 0;
};

inline constexpr std::size_t kNonceBytes = 32;

std::string newNonce();

enum class Side { leader, guest };

/// Proves for this connection that `side` knows the job's secret. `rank`, `size`: the guest's.
Digest proofOf(const JoinOptions& options, Side side, std::string_view leaderNonce,
               std::string_view guestNonce, int rank, int size);

}  // namespace gradlink::shm
