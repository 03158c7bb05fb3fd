// Where a hub is reached: by a name in the abstract namespace, or, where NCCL_SOCKET_IFNAME says
// which interfaces to use, over TCP, so that ranks may be on other hosts.
#pragma once

#include <sys/socket.h>

#include <string>

namespace gradlink::fake {

struct Address {
  sockaddr_storage value{};
  socklen_t length = 0;

  /// Of a hub's name.
  explicit Address(const std::string& name);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
  int family() const { return value.ss_family; }
};

struct Listener {
  int socket = -1;
  std::string name;
};
/// `token` is unique among all hubs.
Listener listenAs(const std::string& token);

}  // namespace gradlink::fake
