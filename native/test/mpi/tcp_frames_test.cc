// What a rank does with frames that no rank sends, from somebody who knows the job's secret: it
// ends the connection, and nothing of them is used.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <thread>

#include "mpi/tcp/engine.h"

namespace gradlink::mpi::tcp {
namespace {

constexpr double kMostMs = 20000;
constexpr std::uint64_t kContext = 7;

void waitUntil(const std::function<bool()>& over) {
  const Deadline deadline = Deadline::in(kMostMs);
  while (!over()) {
    if (deadline.passed()) throw std::runtime_error("it does not come");
    std::this_thread::yield();
  }
}

Settings settingsOf(int rank, int size, int port) {
  return {.rank = rank, .size = size, .port = port, .secret = "of this test"};
}
int freePort() { return ownAddress(listenAt(resolve("127.0.0.1", 0))).port(); }

/// A process that says it is a rank, and then sends what it likes.
class Forger {
 public:
  /// Comes to rank 0.
  Forger(int rank, int size, int port) {
    Hello hello;
    hello.rank = rank;
    hello.size = size;
    hello.port = 1;
    waitUntil([&] {
      socket_ = connectTo(resolve("127.0.0.1", port));
      pollfd look{socket_.get(), POLLOUT, 0};
      return socket_.open() && poll(&look, 1, -1) == 1 && connectError(socket_) == 0;
    });
    shake(Handshake(std::move(socket_), hello, settingsOf(rank, size, port).secret));
  }
  /// Is rank 0, to which rank 1 comes.
  explicit Forger(const Fd& listener) {
    waitUntil([&] {
      socket_ = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return socket_.open();
    });
    shake(Handshake(std::move(socket_), 0, 2, settingsOf(0, 2, 1).secret));
  }

  void send(const FrameHead& head, std::size_t bytes = 0) {
    std::vector<char> frame(sizeof(head) + bytes, 'A');
    std::memcpy(frame.data(), &head, sizeof(head));
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
  /// The next head of this kind, whatever comes before it.
  FrameHead next(FrameKind kind) {
    for (;;) {
      FrameHead head;
      take(&head, sizeof(head));
      if (head.kind == kind) return head;
      std::vector<char> dropped(head.bytes);
      take(dropped.data(), dropped.size());
    }
  }

 private:
  void shake(Handshake handshake) {
    waitUntil([&] { return handshake.go() != Handshake::Status::underway; });
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
};

/// Rank 0 of a job whose other ranks are forgers.
struct Victim {
  explicit Victim(int size) {
    const int port = freePort();
    engine = std::make_unique<Engine>(settingsOf(0, size, port));
    std::thread meeting([&] { engine->meet(kMostMs); });
    for (int rank = 1; rank < size; ++rank) others.emplace_back(rank, size, port);
    meeting.join();
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

struct Forged {
  const char* name;
  FrameHead head;
};
void PrintTo(const Forged& forged, std::ostream* out) { *out << forged.name; }

class TcpForgedFrames : public testing::TestWithParam<Forged> {};

TEST_P(TcpForgedFrames, EndTheConnection) {
  Victim victim(2);
  // As many bytes as it says, so that what comes next is no wrong head.
  const FrameHead& head = GetParam().head;
  const bool follow = head.bytes <= 1 << 20 && head.kind != FrameKind::offer &&
                      head.kind != FrameKind::accept && head.kind != FrameKind::bye;
  victim.others[0].send(head, follow ? head.bytes : 0);
  victim.expectExpelled(1);
}

constexpr std::uint64_t kEverything = ~std::uint64_t{0};
const Forged kForged[] = {
    {"unknownKind", {.kind = static_cast<FrameKind>(7)}},
    {"kindOfManyBits", {.kind = static_cast<FrameKind>(0x80000000)}},
    {"messageOfAllBytes", {.kind = FrameKind::message, .bytes = kEverything}},
    {"messageThatShouldBeOffered", {.kind = FrameKind::message, .bytes = kMostAtOnce + 1}},
    {"shortOffer", {.kind = FrameKind::offer, .bytes = kMostAtOnce, .id = 1}},
    {"offerWithoutNumber", {.kind = FrameKind::offer, .bytes = kMostAtOnce + 1}},
    {"acceptanceOfNothing", {.kind = FrameKind::accept, .id = 9, .other = 1}},
    {"payloadForNobody", {.kind = FrameKind::payload, .bytes = 1 << 20, .id = 1}},
    {"tableOfAnyRank", {.kind = FrameKind::table, .bytes = 2 * sizeof(Entry)}},
    {"refusalOfAnyRank", {.kind = FrameKind::failed, .bytes = 10}},
    {"goodbyeWithBytes", {.kind = FrameKind::bye, .bytes = 10}},
};
INSTANTIATE_TEST_SUITE_P(Heads, TcpForgedFrames, testing::ValuesIn(kForged),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TcpFrames, WhatComesAfterAGoodbyeEndsTheConnection) {
  Victim victim(3);
  victim.others[0].send({});
  victim.others[0].send({.kind = FrameKind::message, .context = kContext, .bytes = 8}, 8);
  victim.expectExpelled(1);
  // The others are heard as before.
  victim.others[1].send({.kind = FrameKind::message, .context = kContext, .bytes = 8}, 8);
  std::array<char, 8> place{};
  victim.engine->mailbox(kContext).name({0, 1, 2}, 0);
  Request* const request =
      victim.engine->receive(kContext, place.data(), place.size(), 2, kAnyTagOfShim);
  victim.progressUntil([&] { return request->done; });
  EXPECT_EQ(std::string(place.begin(), place.end()), "AAAAAAAA");
  EXPECT_FALSE(victim.engine->isGone(2));
  delete request;
}

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

TEST(TcpFrames, APayloadThatIsLongerThanItsOfferWritesNothing) {
  Victim victim(3);
  Offered offered(victim);
  victim.others[0].send(
      {.kind = FrameKind::payload, .bytes = Offered::kBytes + 1000, .id = offered.id},
      Offered::kBytes + 1000);
  victim.expectExpelled(1);
  EXPECT_EQ(offered.place, std::vector<char>(offered.place.size()));
  EXPECT_FALSE(offered.request->done);
}

TEST(TcpFrames, APayloadOfAnotherRankIsNotTaken) {
  Victim victim(3);
  Offered offered(victim);
  victim.others[1].send({.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id},
                        Offered::kBytes);
  victim.expectExpelled(2);
  victim.others[0].send({.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id},
                        Offered::kBytes);
  victim.progressUntil([&] { return offered.request->done; });
  EXPECT_EQ(offered.request->status.bytes, Offered::kBytes);
  EXPECT_FALSE(victim.engine->isGone(1));
}

TEST(TcpFrames, APayloadWhoseReceiveWasGivenUpIsDropped) {
  Victim victim(3);
  Offered offered(victim);
  victim.engine->cancel(*offered.request);
  victim.others[0].send({.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id},
                        Offered::kBytes);
  // Its number is used up.
  victim.others[0].send({.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id},
                        Offered::kBytes);
  victim.expectExpelled(1);
  EXPECT_EQ(offered.place, std::vector<char>(offered.place.size()));
}

class TcpForgedMeetings : public testing::TestWithParam<Forged> {};

TEST_P(TcpForgedMeetings, LoseRankZero) {
  const Fd listener = listenAt(resolve("127.0.0.1", 0));
  Engine engine(settingsOf(1, 2, ownAddress(listener).port()));
  ErrorCode code = ErrorCode::system;
  int rank = -1;
  std::thread meeting([&] {
    try {
      engine.meet(kMostMs);
    } catch (const Error& error) {
      code = error.code;
      rank = error.rank;
    }
  });
  Forger zero(listener);
  zero.send(GetParam().head, GetParam().head.bytes);
  meeting.join();
  EXPECT_EQ(code, ErrorCode::peerLost);
  EXPECT_EQ(rank, 0);
}

const Forged kForgedMeetings[] = {
    {"tableOfOneRank", {.kind = FrameKind::table, .bytes = sizeof(Entry)}},
    {"tableOfNoAddresses", {.kind = FrameKind::table, .bytes = 2 * sizeof(Entry)}},
    {"refusalOfAMegabyte", {.kind = FrameKind::failed, .bytes = 1 << 20, .id = 1}},
    {"refusalWithAnUnknownCode", {.kind = FrameKind::failed, .bytes = 5, .id = 99}},
    {"refusalThatBlamesNoRank", {.kind = FrameKind::failed, .tag = 2, .bytes = 5}},
};
INSTANTIATE_TEST_SUITE_P(Heads, TcpForgedMeetings, testing::ValuesIn(kForgedMeetings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradlink::mpi::tcp
