#include "shm/rendezvous/addresses.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "shm/rendezvous/secret.h"
#include "shm/segment.h"

namespace gradlink::shm {

Found lookAt(const JoinOptions& options, int number) {
  const RendezvousAddress address(options, number);
  File socket = makeRendezvousSocket();
  if (connect(socket.get(), address.get(), address.length()) == 0) {
    if (!sameUser(socket)) return {Holder::others, File()};
    return {Holder::leader, std::move(socket)};
  }
  // EAGAIN: its queue is full.
  if (errno == EAGAIN || errno == EINTR) return {Holder::unclear, File()};
  if (errno != ECONNREFUSED) {
    throw systemError("join: cannot connect to the rendezvous's socket", errno);
  }
  if (bind(socket.get(), address.get(), address.length()) != 0) {
    if (errno != EADDRINUSE) throw systemError("join: cannot bind a socket", errno);
    return {Holder::unclear, File()};
  }
  if (listen(socket.get(), kMaxRanks) != 0) throw systemError("join: cannot listen", errno);
  return {Holder::self, std::move(socket)};
}

}  // namespace gradlink::shm
