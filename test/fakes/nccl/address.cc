#include "nccl/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace gradlink::fake {
namespace {

constexpr const char* kOverTcp = "tcp/";
constexpr int kBacklog = 128;

/// The address of the first interface whose name begins as the variable says; false: none.
bool ownAddress(sockaddr_in& address) {
  const char* const prefix = std::getenv("NCCL_SOCKET_IFNAME");
  if (prefix == nullptr || prefix[0] == '\0') return false;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = all; each != nullptr && !found; each = each->ifa_next) {
    found = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
            std::strncmp(each->ifa_name, prefix, std::strlen(prefix)) == 0;
    if (found) std::memcpy(&address, each->ifa_addr, sizeof(address));
  }
  freeifaddrs(all);
  return found;
}

}  // namespace

Address::Address(const std::string& name) {
  if (name.rfind(kOverTcp, 0) == 0) {
    // tcp/ADDRESS/PORT/TOKEN
    const std::size_t host = std::strlen(kOverTcp);
    const std::size_t port = name.find('/', host) + 1;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(name.c_str() + port)));
    inet_pton(AF_INET, name.substr(host, port - 1 - host).c_str(), &to.sin_addr);
    length = sizeof(to);
    std::memcpy(&value, &to, sizeof(to));
    return;
  }
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&value, &to, sizeof(to));
}

Listener listenAs(const std::string& token) {
  Listener made;
  sockaddr_in own{};
  const bool overTcp = ownAddress(own);
  made.socket = ::socket(overTcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  made.name = "gradlink-fake-nccl/" + token;
  socklen_t length = sizeof(own);
  const Address at(made.name);
  const bool bound = overTcp ? ::bind(made.socket, reinterpret_cast<sockaddr*>(&own), length) == 0
                             : ::bind(made.socket, at.get(), at.length) == 0;
  if (!bound || ::listen(made.socket, kBacklog) != 0) {
    if (made.socket >= 0) ::close(made.socket);
    return {-1, made.name};
  }
  if (overTcp) {
    getsockname(made.socket, reinterpret_cast<sockaddr*>(&own), &length);
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text));
    made.name =
        kOverTcp + std::string(text) + "/" + std::to_string(ntohs(own.sin_port)) + "/" + token;
  }
  return made;
}

}  // namespace gradlink::fake
