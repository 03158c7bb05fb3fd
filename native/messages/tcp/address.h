// TCP addresses and their sockets. All sockets are non-blocking.
#pragma once

#include <netinet/in.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "messages/tcp/settings.h"

namespace gradlink::messages::tcp {

inline constexpr int kMostPort = 65535;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
  Fd& operator=(Fd&& from) noexcept {
    std::swap(fd_, from.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// IPv4 or IPv6, in wire format.
struct Address {
  sockaddr_in6 raw{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
  socklen_t length() const {
    return raw.sin6_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }
  int port() const;
  void setPort(int port);
  bool isLoopback() const;
  /// Without the port, as inet_pton expects.
  void* host();
  std::string hostText() const;
  /// "10.0.0.7:29500".
  std::string text() const;
};

/// The address that a process listens on and connects from, if one was chosen.
using OwnAddress = std::optional<Address>;

/// Parses an address without a port; nothing for an empty text.
OwnAddress ownAddressOf(const std::string& text);
/// Resolves a host in the family of the own address. Throws system with the resolver's text.
Address resolve(const std::string& host, int port, const OwnAddress& own = {});
/// Where rank 0 listens: at the advertised address. A host that resolves its name to loopback only
/// listens at its own address, or on all. Throws invalidArgument if the two addresses differ.
Address listeningAddress(const std::string& host, int port, const OwnAddress& own);

/// Listens at a free port of the range, or at the address's port. Throws system.
Fd listenAt(Address at, PortRange ports = {});
/// Starts to connect from the own address; the socket becomes writable. On failure none, and errno.
Fd connectTo(const Address& to, const OwnAddress& own = {});
/// Enables keep-alive probes after `seconds` of silence, which also keep NAT entries alive. Without
/// an answer the connection ends with ETIMEDOUT after as long again. 0: off.
void keepAlive(const Fd& socket, int seconds);
Address ownAddress(const Fd& socket);
int connectError(const Fd& socket);

/// Whether a failed socket call may succeed later.
bool mayComeLater(int error);

/// Equal for processes that can share memory: of one kernel, network namespace and user.
std::array<unsigned char, 32> hostIdentity();

}  // namespace gradlink::messages::tcp
