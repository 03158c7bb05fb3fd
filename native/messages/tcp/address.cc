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

bool meansLoopback(const std::string& host) {
  return host == "localhost" || host.compare(0, 4, "127.") == 0 || host == "::1";
}

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

/// The host may have other names, but nobody meant its loopback address.
bool knowsOnlyLoopback(const std::string& host, const std::vector<Address>& all) {
  return !meansLoopback(host) && std::all_of(all.begin(), all.end(), [](const Address& address) {
    return address.isLoopback();
  });
}

/// The addresses that the own address can reach.
std::vector<Address> ofItsFamily(std::vector<Address> all, const std::string& host,
                                 const OwnAddress& own) {
  if (!own) return all;
  std::erase_if(
      all, [&](const Address& address) { return address.raw.sin6_family != own->raw.sin6_family; });
  if (!all.empty()) return all;
  throw Error(ErrorCode::system, "join: '" + host +
                                     "' of MASTER_ADDR has no address of the family of " +
                                     own->hostText() + ", which GRADLINK_INTERFACE chooses");
}

Address withPort(Address address, int port) {
  address.setPort(port);
  return address;
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

// The port has the same offset in both families.
int Address::port() const { return ntohs(raw.sin6_port); }
void Address::setPort(int port) { raw.sin6_port = htons(static_cast<std::uint16_t>(port)); }

bool Address::isLoopback() const {
  if (raw.sin6_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&raw.sin6_addr);
  sockaddr_in four{};
  std::memcpy(&four, &raw, sizeof(four));
  return ntohl(four.sin_addr.s_addr) >> 24 == kLoopbackNet;
}

void* Address::host() {
  auto* const four = reinterpret_cast<sockaddr_in*>(&raw);
  return raw.sin6_family == AF_INET6 ? static_cast<void*>(&raw.sin6_addr) : &four->sin_addr;
}

std::string Address::hostText() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  Address copy = *this;
  inet_ntop(raw.sin6_family, copy.host(), text.data(), text.size());
  return text.data();
}

std::string Address::text() const {
  const std::string host = hostText();
  const std::string shown = raw.sin6_family == AF_INET6 ? "[" + host + "]" : host;
  return shown + ":" + std::to_string(port());
}

OwnAddress ownAddressOf(const std::string& text) {
  if (text.empty()) return {};
  Address own;
  own.raw.sin6_family = text.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (inet_pton(own.raw.sin6_family, text.c_str(), own.host()) == 1) return own;
  throw misuse("join", "'" + text + "' is not an address to listen on and connect from");
}

Address resolve(const std::string& host, int port, const OwnAddress& own) {
  const std::vector<Address> all = allOf(host, port);
  if (own && knowsOnlyLoopback(host, all)) return withPort(*own, port);
  return ofItsFamily(all, host, own).front();
}

Address listeningAddress(const std::string& host, int port, const OwnAddress& own) {
  const std::vector<Address> all = allOf(host, port);
  if (knowsOnlyLoopback(host, all)) {
    Address any;
    any.raw.sin6_family = AF_INET;
    return withPort(own.value_or(any), port);
  }
  const std::vector<Address> mine = ofItsFamily(all, host, own);
  if (meansLoopback(host)) return mine.front();
  const auto at = std::find_if(mine.begin(), mine.end(), [&](const Address& address) {
    return own ? address.hostText() == own->hostText() : !address.isLoopback();
  });
  if (at != mine.end()) return *at;
  throw misuse("join", "rank 0 listens at MASTER_ADDR, and '" + host + "' is " +
                           mine.front().hostText() + ", but GRADLINK_INTERFACE chooses " +
                           own->hostText() + " on this host: name that address on all ranks");
}

Fd listenAt(Address at, PortRange ports) {
  const bool anywhere = ports.first == 0;
  for (int port = anywhere ? at.port() : ports.first;; ++port) {
    at.setPort(port);
    Fd made = newSocket(at);
    if (!made.open()) throw systemError("join: no socket", errno);
    const int on = 1;
    setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(made.get(), at.get(), at.length()) == 0 && listen(made.get(), kBacklog) == 0) {
      return made;
    }
    // A port below 1024 may be free but not permitted.
    const bool taken = errno == EADDRINUSE || errno == EACCES;
    if (anywhere || !taken) throw systemError("join: cannot listen at " + at.text(), errno);
    if (port < ports.last) continue;
    throw systemError("join: no port of GRADLINK_PORTS=" + std::to_string(ports.first) + "-" +
                          std::to_string(ports.last) + " is available at " + at.hostText(),
                      errno);
  }
}

Fd connectTo(const Address& to, const OwnAddress& own) {
  Fd made = newSocket(to);
  if (!made.open()) return made;
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Choose the port at connect: connections to different destinations may then share it.
  setsockopt(made.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  if (own && bind(made.get(), own->get(), own->length()) != 0) {
    made.reset();
    return made;
  }
  if (connect(made.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS) made.reset();
  return made;
}

void keepAlive(const Fd& socket, int seconds) {
  if (seconds == 0) return;
  const int on = 1;
  const int questions = 3;
  const int between = std::max(1, seconds / questions);
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &questions, sizeof(questions));
}

Address ownAddress(const Fd& socket) {
  Address own;
  socklen_t length = sizeof(own.raw);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own.raw), &length) != 0) {
    throw systemError("join: cannot read a socket's address", errno);
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
