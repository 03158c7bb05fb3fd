// A rank over TCP, and processes that are ranks as far as it can tell and send what they like.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <functional>
#include <optional>

#include "messages/tcp/tcp_engine.h"
#include "test/waiting.h"

namespace gradlink::messages::tcp {
inline constexpr double kMostMs = 20000;
inline constexpr std::uint64_t kContext = 7;

using test::waitUntil;

inline Settings settingsOf(int rank, int size, int port, bool sealsAll = false) {
  return {.rank = rank, .size = size, .port = port, .secret = "of this test", .sealsAll = sealsAll};
}
/// A port that this process keeps from being that of somebody's outgoing connection: bound, but not
/// listened at.
inline int freePort() {
  constexpr std::size_t kMostKept = 64;
  static std::deque<Fd> kept;
  Address at = resolve("127.0.0.1", 0);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  EXPECT_EQ(bind(socket.get(), at.get(), at.length()), 0);
  const int port = ownAddress(socket).port();
  kept.push_back(std::move(socket));
  if (kept.size() > kMostKept) kept.pop_front();
  return port;
}

/// A process that says it is a rank, and then sends what it likes.
class Forger {
 public:
  /// Comes to rank 0.
  Forger(int rank, int size, int port) {
    Hello hello{.rank = rank, .size = size, .port = 1};
    come(port);
    shake(Handshake(std::move(socket_), hello, settingsOf(rank, size, port).secret));
  }
  /// Comes without a word.
  explicit Forger(int port) { come(port); }
  /// Is rank 0, to which rank 1 comes.
  explicit Forger(const Fd& listener) {
    waitUntil([&] {
      socket_ = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return socket_.open();
    });
    shake(Handshake(std::move(socket_), 0, 2, false, settingsOf(0, 2, 1).secret));
  }

  /// A frame as it goes over the connection, which this one takes for the next.
  std::vector<char> sealed(const FrameHead& head, std::size_t bytes = 0) {
    return sealed(head, std::vector<char>(bytes, 'A'));
  }
  std::vector<char> sealed(const FrameHead& head, const std::vector<char>& payload) {
    Seal::Frame tags = seals_->out.next(head);
    std::vector<char> frame(sizeof(head) + sizeof(Tag));
    std::memcpy(frame.data(), &head, sizeof(head));
    std::memcpy(frame.data() + sizeof(head), tags.head.data(), sizeof(Tag));
    frame.insert(frame.end(), payload.begin(), payload.end());
    if (!seals_->cover(payload.size())) return frame;
    const Tag tag = tags.payload.update(payload.data(), payload.size()).finish();
    frame.insert(frame.end(), tag.begin(), tag.end());
    return frame;
  }
  void put(const std::vector<char>& frame) {
    std::size_t sent = 0;
    // Whoever is refused cannot write any more.
    waitUntil([&] {
      const ssize_t put =
          ::send(socket_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
      if (put < 0) return !mayComeLater(errno);
      sent += static_cast<std::size_t>(put);
      return sent == frame.size();
    });
  }
  /// The next frame of this kind that came, for the other direction.
  std::vector<char> sentBack(FrameKind kind) {
    const FrameHead head = next(kind);
    std::vector<char> frame(sizeof(head) + sizeof(lastTag_));
    std::memcpy(frame.data(), &head, sizeof(head));
    std::memcpy(frame.data() + sizeof(head), lastTag_.data(), sizeof(lastTag_));
    return frame;
  }
  /// Bytes that come until the other side has closed.
  std::size_t rest() {
    std::array<char, 4096> some;
    std::size_t bytes = 0;
    waitUntil([&] {
      const ssize_t got = recv(socket_.get(), some.data(), some.size(), 0);
      if (got > 0) bytes += static_cast<std::size_t>(got);
      return got == 0 || (got < 0 && !mayComeLater(errno));
    });
    return bytes;
  }
  /// Throws away what has come.
  void drain() {
    std::array<char, 4096> some;
    while (recv(socket_.get(), some.data(), some.size(), 0) > 0) continue;
  }
  void send(const FrameHead& head, std::size_t bytes = 0) { put(sealed(head, bytes)); }
  /// The next head of this kind, whatever comes before it.
  FrameHead next(FrameKind kind) {
    for (;;) {
      FrameHead head;
      take(&head, sizeof(head));
      take(&lastTag_, sizeof(lastTag_));
      EXPECT_EQ(seals_->in.next(head).head, lastTag_);
      if (head.kind == kind) return head;
      std::vector<char> dropped(head.bytes + (seals_->cover(head.bytes) ? sizeof(Tag) : 0));
      take(dropped.data(), dropped.size());
    }
  }

 private:
  void come(int port) {
    waitUntil([&] {
      socket_ = connectTo(resolve("127.0.0.1", port));
      pollfd look{socket_.get(), POLLOUT, 0};
      return socket_.open() && poll(&look, 1, -1) == 1 && connectError(socket_) == 0;
    });
  }
  void shake(Handshake handshake) {
    waitUntil([&] { return handshake.go() != Handshake::Status::underway; });
    seals_.emplace(handshake.seals());
    socket_ = handshake.take();
  }
  void take(void* to, std::size_t bytes) {
    std::size_t got = 0;
    waitUntil([&] {
      const ssize_t some = recv(socket_.get(), static_cast<char*>(to) + got, bytes - got, 0);
      if (some > 0) got += static_cast<std::size_t>(some);
      return got == bytes;
    });
  }

  Fd socket_;
  std::optional<Seals> seals_;
  Tag lastTag_{};
};

/// Rank 0 of a job whose other ranks are forgers.
struct Victim {
  explicit Victim(int size, bool sealsAll = false) {
    const int port = freePort();
    engine = std::make_unique<Engine>(settingsOf(0, size, port, sealsAll));
    std::thread rendezvous([&] { engine->meet(kMostMs); });
    for (int rank = 1; rank < size; ++rank) others.emplace_back(rank, size, port);
    rendezvous.join();
  }
  void progressUntil(const std::function<bool()>& over) {
    waitUntil([&] {
      engine->progress(1);
      return over();
    });
  }
  void expectExpelled(int rank) {
    progressUntil([&] { return engine->isGone(rank); });
  }

  std::unique_ptr<Engine> engine;
  std::vector<Forger> others;
};

/// A receive of a long message, of which the forgers have the number.
struct Offered {
  static constexpr std::size_t kBytes = kMostAtOnce + 1000;
  static constexpr std::size_t kBehind = 4096;
  explicit Offered(Victim& victim) {
    victim.engine->mailbox(kContext).name({0, 1, 2}, 0);
    request = victim.engine->receive(kContext, place.data(), kBytes, 1, kAnyTagOfShim);
    victim.others[0].send(
        {.kind = FrameKind::offer, .context = kContext, .bytes = kBytes, .id = 1});
    std::thread reader([&] { id = victim.others[0].next(FrameKind::accept).other; });
    victim.progressUntil([&] { return request->id != 0; });
    reader.join();
  }
  ~Offered() { delete request; }
  std::vector<char> place = std::vector<char>(kBytes + kBehind);
  Request* request = nullptr;
  std::uint64_t id = 0;
};

}  // namespace gradlink::messages::tcp
