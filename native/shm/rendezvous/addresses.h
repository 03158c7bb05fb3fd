// Where the processes of a rendezvous find each other.
//
// An address becomes public when it is bound, and another user of the host can bind it for the next
// rendezvous of the same name. So a name has a list of unrelated addresses HMAC(job, name, number):
//
// - Every rank tries them in order and skips those that other users hold. It follows the leader
//   that it finds, or binds the first free address and leads there. Usually that is number 0, with
//   no more system calls than a single address would need.
// - Ranks may lead at different numbers. Until all ranks have come, a leader checks the earlier
//   numbers: it also takes free ones, and if another rank leads at one, it and its guests start
//   over there. Only the later number gives up, so all come to one leader. A rendezvous needs every
//   rank, so no two can be complete.
// - A holder that does not listen, or whose queue is full, may be another user or a rank. It is
//   skipped after a short while: if it was a rank, the previous rule brings them together.
// - If other users hold the whole list, joining fails with an error that says so. Each rendezvous
//   reveals at most one address, so that takes them as many rendezvous.
#pragma once

#include "shm/rendezvous/packets.h"
#include "shm/shm.h"

namespace gradlink::shm {

inline constexpr int kMostAddresses = 256;

enum class Holder {
  leader,
  self,     // it was free; now this process listens there
  others,   // another user's process listens there
  unclear,  // bound, but does not accept connections now
};

struct Found {
  Holder holder;
  File socket;  // connected to the leader, or listening
};

/// Tries the address with that number and takes it if it is free.
Found lookAt(const JoinOptions& options, int number);

}  // namespace gradlink::shm
