// Addresses of TCP, and the sockets made with them. All sockets are non-blocking.
#pragma once

#include <netinet/in.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "messages/tcp/settings.h"

namespace gradlink::messages::tcp {

inline constexpr int kMostPort = 65535;

/// Owns a file descriptor.
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

/// Of IPv4 or IPv6, as it travels between ranks.
struct Address {
  sockaddr_in6 raw{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
  socklen_t length() const {
    return raw.sin6_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }
  int port() const;
  void setPort(int port);
  bool isLoopback() const;
  /// Without the port, where inet_pton puts it.
  void* host();
  std::string hostText() const;
  /// "10.0.0.7:29500".
  std::string text() const;
};

/// The address that a process listens and calls on, where one was chosen.
using OwnAddress = std::optional<Address>;

/// Of an address, without a port; none of an empty text.
OwnAddress ownAddressOf(const std::string& text);
/// A name or an address with a port, as the own address reaches it. Throws system with what the
/// resolver says.
Address resolve(const std::string& host, int port, const OwnAddress& own = {});
/// Where rank 0 listens: at the address that the others connect to. A host that knows its own name
/// as a loopback address only listens at its own address, or on all. Throws invalidArgument where
/// the others are told of another address than the own.
Address listeningAddress(const std::string& host, int port, const OwnAddress& own);

/// At a port of the range that is free; without a range at that of the address. Throws system.
Fd listenAt(Address at, PortRange ports = {});
/// Begins to connect, from the own address; the socket becomes writable when that is over. None,
/// and errno, where it cannot.
Fd connectTo(const Address& to, const OwnAddress& own = {});
/// Has the system ask whether the other side is there once so many seconds nothing has come, which
/// also keeps switches from forgetting a connection at rest. It ends, with ETIMEDOUT, after as long
/// again without an answer. Not for 0.
void keepAlive(const Fd& socket, int seconds);
Address ownAddress(const Fd& socket);
/// 0, or the errno of the attempt to connect.
int connectError(const Fd& socket);

/// Whether a call on a socket that failed so may do better after a wait.
bool mayComeLater(int error);

/// Equal for processes that can share memory: of one kernel, in one network namespace, of one user.
std::array<unsigned char, 32> hostIdentity();

}  // namespace gradlink::messages::tcp
