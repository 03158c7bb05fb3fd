// Processes meet at a socket in the abstract namespace (no file to be left behind): whoever binds
// it first leads, checks everybody who comes, and hands over the segment. When all hold it the
// socket goes and the name is free again.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "shm/meeting.h"
#include "shm/process_segment.h"

namespace gradlink::shm {
namespace {

// How long a wait may go without a look at the deadline and at `cancelled`.
constexpr int kSliceMs = 50;

enum class Word : std::uint32_t { hello = 1, welcome, ready, gaveUp, start, failed };

/// Every packet starts so. What follows a hello: job, a zero byte, name.
struct Packet {
  Word word;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t code;
  char text[1024];
};
constexpr std::size_t kPacketHead = offsetof(Packet, text);

std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037u;  // FNV-1a
  for (unsigned char c : text) value = (value ^ c) * 1099511628211u;
  return value;
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;

  // The job is a secret and the list of sockets is public: hashed. So is a name that would not fit.
  explicit Address(const JoinOptions& options) {
    const std::string name = options.name.size() <= 40 ? options.name : hex(hash(options.name));
    const std::string path =
        "gradlink/" + std::to_string(getuid()) + "/" + hex(hash(options.job)) + "/" + name;
    value.sun_family = AF_UNIX;
    std::memcpy(value.sun_path + 1, path.data(), path.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

File makeSocket() {
  File socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw systemError("join: cannot create a socket", errno);
  return socket;
}

bool sameUser(const File& socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == getuid();
}

bool sendPacket(const File& socket, const Packet& packet, std::size_t textBytes, int passed = -1) {
  iovec part{const_cast<Packet*>(&packet), kPacketHead + textBytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (passed >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed, sizeof(int));
  }
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0;
}

bool sendText(const File& socket, Word word, const Error& error) {
  Packet packet{word, error.rank, 0, static_cast<std::int32_t>(error.code), {}};
  const std::string text = error.what();
  const std::size_t bytes = std::min(text.size(), sizeof(packet.text));
  std::memcpy(packet.text, text.data(), bytes);
  return sendPacket(socket, packet, bytes);
}

enum class Got { packet, nothing, end };

Got receivePacket(const File& socket, Packet& packet, std::size_t& textBytes,
                  File* passed = nullptr) {
  iovec part{&packet, sizeof(packet)};
  msghdr message{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return errno == EAGAIN || errno == EINTR ? Got::nothing : Got::end;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
    File file(descriptor);
    if (passed != nullptr) *passed = std::move(file);
  }
  if (static_cast<std::size_t>(bytes) < kPacketHead) return Got::end;
  textBytes = static_cast<std::size_t>(bytes) - kPacketHead;
  return Got::packet;
}

int pollSlice(Deadline deadline) {
  if (deadline.at() == Deadline::Clock::time_point::max()) return kSliceMs;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.at() - Deadline::Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, kSliceMs));
}

/// The rank that bound the socket.
class Leader {
 public:
  Leader(const JoinOptions& options, Deadline deadline, File listener)
      : options_(options), deadline_(deadline), listener_(std::move(listener)) {}

  Membership run() {
    File file = makeSegmentFile(options_.size, options_.slotBytes);
    Membership membership = enterSegment(file, options_.rank);
    while (static_cast<int>(ready_) + 1 < options_.size) {
      if (isCancelled(options_)) throw joinCancelled(options_);
      if (deadline_.passed()) fail(missingRanks(options_, missing()));
      turn(file);
    }
    // Before anybody starts: the next meeting of this name must not find this one's socket.
    listener_ = File();
    Packet start{Word::start, options_.rank, options_.size, 0, {}};
    for (auto& [descriptor, guest] : guests_) {
      sendPacket(guest.socket, start, 0);
      hearOut(guest.socket);
    }
    return membership;
  }

 private:
  struct Guest {
    File socket;
    int rank = -1;
    bool ready = false;
  };

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int r = 0; r < options_.size; ++r) {
      const bool here = std::any_of(guests_.begin(), guests_.end(),
                                    [&](const auto& g) { return g.second.rank == r; });
      if (r != options_.rank && !here) ranks.push_back(r);
    }
    return ranks;
  }

  [[noreturn]] void fail(const Error& error) {
    listener_ = File();
    for (auto& [descriptor, guest] : guests_) {
      sendText(guest.socket, Word::failed, error);
      hearOut(guest.socket);
    }
    throw error;
  }

  /// Before a socket is closed: a guest's word that is still unread, as that it gives up at the
  /// same time, would make the closing a reset, which takes what was sent to the guest away from
  /// it.
  static void hearOut(const File& socket) {
    shutdown(socket.get(), SHUT_RD);
    Packet packet;
    std::size_t textBytes = 0;
    while (receivePacket(socket, packet, textBytes) == Got::packet) {
    }
  }

  void turn(const File& file) {
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (auto& [descriptor, guest] : guests_) watched.push_back({descriptor, POLLIN, 0});
    poll(watched.data(), watched.size(), pollSlice(deadline_));
    for (std::size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) hear(watched[i].fd, file);
    }
    if (watched[0].revents != 0) admit();
  }

  void admit() {
    File socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket || !sameUser(socket)) return;
    const int descriptor = socket.get();
    guests_[descriptor] = {std::move(socket)};
  }

  void drop(int descriptor) {
    if (guests_[descriptor].ready) --ready_;
    guests_.erase(descriptor);
  }

  void hear(int descriptor, const File& file) {
    Guest& guest = guests_[descriptor];
    Packet packet;
    std::size_t textBytes = 0;
    const Got got = receivePacket(guest.socket, packet, textBytes);
    if (got == Got::nothing) return;
    if (got == Got::end) return drop(descriptor);
    switch (packet.word) {
      case Word::hello:
        return greet(guest, packet, textBytes, file);
      case Word::ready:
        if (!guest.ready) ++ready_;
        guest.ready = true;
        return;
      case Word::gaveUp:
        fail(missingRanks(options_, missing()));
      default:
        return drop(descriptor);
    }
  }

  void greet(Guest& guest, const Packet& hello, std::size_t textBytes, const File& file) {
    const std::string mine = options_.job + '\0' + options_.name;
    if (std::string(hello.text, textBytes) != mine) {
      sendText(guest.socket, Word::failed,
               Error(ErrorCode::mismatch,
                     "join: another job or name has the same address; choose another name"));
      return drop(guest.socket.get());
    }
    if (hello.size != options_.size) {
      fail(sizesDiffer(options_, options_.rank, options_.size, hello.rank, hello.size));
    }
    const bool taken = hello.rank == options_.rank ||
                       std::any_of(guests_.begin(), guests_.end(),
                                   [&](const auto& g) { return g.second.rank == hello.rank; });
    if (taken) fail(rankTakenTwice(options_, hello.rank));
    guest.rank = hello.rank;
    Packet welcome{Word::welcome, options_.rank, options_.size, 0, {}};
    if (!sendPacket(guest.socket, welcome, 0, file.get())) drop(guest.socket.get());
  }

  const JoinOptions& options_;
  Deadline deadline_;
  File listener_;
  std::map<int, Guest> guests_;
  std::size_t ready_ = 0;
};

/// A rank that found the socket bound. Empty when the leader was lost before all had come: begin
/// again.
std::optional<Membership> follow(const JoinOptions& options, Deadline deadline,
                                 const File& socket) {
  if (!sameUser(socket)) {
    throw Error(ErrorCode::mismatch,
                "join \"" + options.name + "\": another user's process holds this name")
        .withOp("join");
  }
  const std::string text = options.job + '\0' + options.name;
  Packet packet{Word::hello, options.rank, options.size, 0, {}};
  std::memcpy(packet.text, text.data(), text.size());
  if (!sendPacket(socket, packet, text.size())) return std::nullopt;

  std::optional<Membership> membership;
  int leader = -1;
  bool gaveUp = false;
  // Once this rank has given up, the leader tells everybody who is missing; it has this long to do
  // so.
  Deadline last = Deadline::never();
  for (;;) {
    if (isCancelled(options)) throw joinCancelled(options);
    if (deadline.passed() && !gaveUp) {
      gaveUp = true;
      last = Deadline::in(500);
      const Packet notice{Word::gaveUp, options.rank, options.size, 0, {}};
      sendPacket(socket, notice, 0);
    }
    if (last.passed())
      throw missingRanks(options, leader < 0 ? std::vector<int>{} : std::vector<int>{leader});
    pollfd watched{socket.get(), POLLIN, 0};
    poll(&watched, 1, pollSlice(gaveUp ? last : deadline));
    std::size_t textBytes = 0;
    File passed;
    switch (receivePacket(socket, packet, textBytes, &passed)) {
      case Got::nothing:
        continue;
      case Got::end:
        return std::nullopt;
      case Got::packet:
        break;
    }
    if (packet.word == Word::failed) {
      throw Error(static_cast<ErrorCode>(packet.code), std::string(packet.text, textBytes))
          .withRank(packet.rank)
          .withOp("join");
    }
    if (packet.word == Word::start && membership) return membership;
    if (packet.word == Word::welcome && passed) {
      leader = packet.rank;
      membership = enterSegment(passed, options.rank);
      const Packet ready{Word::ready, options.rank, options.size, 0, {}};
      if (!sendPacket(socket, ready, 0)) return std::nullopt;
    }
  }
}

}  // namespace

Membership meetProcesses(const JoinOptions& options, Deadline deadline) {
  if (options.job.size() + options.name.size() + 1 > sizeof(Packet::text)) {
    throw misuse("join", "job and name together may have " +
                             std::to_string(sizeof(Packet::text) - 1) + " bytes");
  }
  const Address address(options);
  for (;;) {
    File socket = makeSocket();
    if (connect(socket.get(), address.get(), address.length) == 0) {
      if (auto membership = follow(options, deadline, socket)) return std::move(*membership);
    } else if (errno == ECONNREFUSED) {
      File listener = makeSocket();
      if (bind(listener.get(), address.get(), address.length) == 0) {
        if (listen(listener.get(), kMaxRanks) != 0) throw systemError("join: cannot listen", errno);
        return Leader(options, deadline, std::move(listener)).run();
      }
      if (errno != EADDRINUSE) throw systemError("join: cannot bind a socket", errno);
    } else if (errno != EAGAIN && errno != EINTR) {
      throw systemError("join: cannot connect to the meeting's socket", errno);
    }
    // Bound but not listening yet, or its leader just went.
    if (isCancelled(options)) throw joinCancelled(options);
    if (deadline.passed()) throw missingRanks(options, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradlink::shm
