// Where the processes of a rendezvous find one another.
//
// An address is public as soon as it is bound, and the same each time that the name is met under.
// Another user of the host can bind it afterwards. So a name has a list of addresses,
// HMAC(job, name, number), of which none tells anything of another:
//
// - Every rank looks at them in their order, and passes by those that other users hold. It follows
//   the leader that it finds, or binds the first that is free and leads there. Where nobody
//   interferes this is number 0, with no system call more than one address would need.
// - Holders come and go, so ranks may lead at different numbers. A leader looks at the numbers
//   before its own until all have come: it takes those that are free, beside what it has, and where
//   another rank leads it gives up and begins again with its guests. Only the later number gives
//   up, and nobody but this user can make it, so that all come to one leader. A rendezvous needs
//   every rank, so two can never be complete at once.
// - Who has bound an address and does not listen, or has a full queue, may be another user or a
//   rank that is about to. After a short while it is passed by: if it was a rank, the rule before
//   brings them together.
// - Other users that hold the whole list are an error that says so. Each rendezvous shows at most
// one
//   address more, so they must have been there for as many rendezvous.
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
