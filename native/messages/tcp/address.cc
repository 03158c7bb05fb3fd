#include "messages/tcp/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/sha256.h"

namespace gradlink::messages::tcp {
namespace {

constexpr int kBacklog = 1024;
constexpr unsigned char kLoopbackNet = 127;

std::vector<Address> allOf(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    throw Error(ErrorCode::system,
                "join: '" + host + "' of MASTER_ADDR is neither an address nor a name known here" +
                    " (" + gai_strerror(failed) + ")");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<Address> all;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_in6)) continue;
    Address address;
    std::memcpy(&address.raw, each->ai_addr, each->ai_addrlen);
    all.push_back(address);
  }
  if (all.empty()) {
    throw Error(ErrorCode::system, "join: '" + host + "' of MASTER_ADDR has no TCP address");
  }
  return all;
}

Fd newSocket(const Address& of) {
  return Fd(socket(of.raw.sin6_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::string linkText(const char* path) {
  std::array<char, PATH_MAX> text{};
  return readlink(path, text.data(), text.size() - 1) < 0 ? std::string() : text.data();
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

// The port lies at the same place in both families.
int Address::port() const { return ntohs(raw.sin6_port); }
void Address::setPort(int port) { raw.sin6_port = htons(static_cast<std::uint16_t>(port)); }

bool Address::isLoopback() const {
  if (raw.sin6_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&raw.sin6_addr);
  sockaddr_in four{};
  std::memcpy(&four, &raw, sizeof(four));
  return ntohl(four.sin_addr.s_addr) >> 24 == kLoopbackNet;
}

std::string Address::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (raw.sin6_family == AF_INET6) {
    inet_ntop(AF_INET6, &raw.sin6_addr, text, sizeof(text));
    return std::string("[").append(text).append("]:").append(std::to_string(port()));
  }
  sockaddr_in four{};
  std::memcpy(&four, &raw, sizeof(four));
  inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(port());
}

Address resolve(const std::string& host, int port) { return allOf(host, port).front(); }

Address listeningAddress(const std::string& host, int port) {
  const std::vector<Address> all = allOf(host, port);
  const bool meantLoopback =
      host == "localhost" || host.compare(0, 4, "127.") == 0 || host == "::1";
  const auto outside = std::find_if(all.begin(), all.end(),
                                    [](const Address& address) { return !address.isLoopback(); });
  if (meantLoopback) return all.front();
  if (outside != all.end()) return *outside;
  Address any;
  any.raw.sin6_family = AF_INET;
  any.setPort(port);
  return any;
}

Fd listenAt(const Address& at) {
  Fd made = newSocket(at);
  if (!made.open()) throw systemError("join: no socket", errno);
  const int on = 1;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(made.get(), at.get(), at.length()) != 0 || listen(made.get(), kBacklog) != 0) {
    throw systemError("join: cannot listen at " + at.text(), errno);
  }
  return made;
}

Fd connectTo(const Address& to) {
  Fd made = newSocket(to);
  if (!made.open()) return made;
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(made.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS) made.reset();
  return made;
}

Address ownAddress(const Fd& socket) {
  Address own;
  socklen_t length = sizeof(own.raw);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own.raw), &length) != 0) {
    throw systemError("join: no address of a socket", errno);
  }
  return own;
}

int connectError(const Fd& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

bool mayComeLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

std::array<unsigned char, 32> hostIdentity() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(boot, text);
  text.append(" ").append(linkText("/proc/self/ns/net")).append(" ");
  text.append(std::to_string(getuid()));
  return sha256(text);
}

}  // namespace gradlink::messages::tcp
