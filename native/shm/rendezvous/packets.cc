#include "shm/rendezvous/packets.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace gradlink::shm {
namespace {

constexpr std::size_t kPacketHead = offsetof(Packet, text);

constexpr std::size_t kPassed = 2;

/// Keeps the first descriptors received, if wanted, and closes the rest.
void takeDescriptors(msghdr& message, SegmentFiles* passed) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(descriptor));
      File file(descriptor);
      if (passed == nullptr || *passed) continue;
      (passed->control ? passed->rings : passed->control) = std::move(file);
    }
  }
}

}  // namespace

File makeRendezvousSocket() {
  File socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw systemError("join: cannot create a socket", errno);
  return socket;
}

bool sameUser(const File& socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == geteuid();
}

namespace {
bool sendPacket(const File& socket, const Packet& packet, std::size_t textBytes,
                const SegmentFiles* passed) {
  iovec part{const_cast<Packet*>(&packet), kPacketHead + textBytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kPassed * sizeof(int))> control{};
  if (passed != nullptr) {
    const int descriptors[kPassed] = {passed->control.get(), passed->rings.get()};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::memcpy(CMSG_DATA(header), descriptors, sizeof(descriptors));
  }
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0;
}

bool sendText(const File& socket, Packet packet, std::string_view text,
              const SegmentFiles* passed) {
  const std::size_t bytes = std::min(text.size(), sizeof(packet.text));
  std::copy_n(text.data(), bytes, packet.text);
  return sendPacket(socket, packet, bytes, passed);
}
}  // namespace

bool sendWord(const File& socket, Word word, int rank, int size, std::string_view text,
              const SegmentFiles* passed) {
  return sendText(socket, {word, rank, size, 0, {}}, text, passed);
}

bool sendError(const File& socket, const Error& error) {
  const auto code = static_cast<std::int32_t>(error.code);
  return sendText(socket, {Word::failed, error.rank, 0, code, {}}, error.what(), nullptr);
}

Got receivePacket(const File& socket, Packet& packet, std::string_view& text,
                  SegmentFiles* passed) {
  iovec part{&packet, sizeof(packet)};
  msghdr message{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kPassed * sizeof(int))> control{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return errno == EAGAIN || errno == EINTR ? Got::nothing : Got::end;
  takeDescriptors(message, passed);
  if (static_cast<std::size_t>(bytes) < kPacketHead) return Got::end;
  text = {packet.text, static_cast<std::size_t>(bytes) - kPacketHead};
  return Got::packet;
}

void hearOut(const File& socket) {
  shutdown(socket.get(), SHUT_RD);
  Packet packet;
  std::string_view text;
  while (receivePacket(socket, packet, text) == Got::packet) {
  }
}

}  // namespace gradlink::shm
