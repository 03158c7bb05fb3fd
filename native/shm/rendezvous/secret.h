// What only processes that know the job's secret can work out: where they meet, and what they
// prove it with. The list of sockets is public, and a name in it tells nothing of the job or of
// its other names.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "core/sha256.h"
#include "shm/shm.h"

namespace gradlink::shm {

/// A socket's name in the abstract namespace.
class RendezvousAddress {
 public:
  /// One of the list that a rendezvous has: addresses.h says why it has several.
  RendezvousAddress(const JoinOptions& options, int number);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value_); }
  socklen_t length() const { return length_; }

 private:
  sockaddr_un value_{};
  socklen_t length_ = 0;
};

inline constexpr std::size_t kNonceBytes = 32;

/// Random bytes that are used once.
std::string newNonce();

enum class Side { leader, guest };

/// Shows that `side` knows the job's secret, at this rendezvous and on this connection alone.
/// `rank` and `size` are the guest's.
Digest proofOf(const JoinOptions& options, Side side, std::string_view leaderNonce,
               std::string_view guestNonce, int rank, int size);

}  // namespace gradlink::shm
