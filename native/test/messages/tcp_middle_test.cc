// What somebody on the path between two ranks can do to what they send, without the job's secret;
// and what strangers can do at a rank's port.
#include "test/messages/tcp_forger.h"

namespace gradlink::messages::tcp {
namespace {

using Bytes = std::vector<char>;
constexpr std::size_t kSealedHead = sizeof(FrameHead) + sizeof(Tag);

/// Two messages of eight bytes, as rank 1 sends them, and what becomes of them on their way.
struct Middle {
  const char* name;
  void (*change)(Bytes& first, Bytes& second);
};
void PrintTo(const Middle& middle, std::ostream* out) { *out << middle.name; }

class TcpMiddle : public testing::TestWithParam<Middle> {};

TEST_P(TcpMiddle, EndsTheConnection) {
  Victim victim(3);
  victim.engine->mailbox(kContext).name({0, 1, 2}, 0);
  std::array<std::array<char, 8>, 2> places{};
  std::array<std::unique_ptr<Request>, 2> requests;
  for (int tag : {0, 1}) {
    const auto at = static_cast<std::size_t>(tag);
    requests[at].reset(
        victim.engine->receive(kContext, places[at].data(), places[at].size(), 1, tag));
  }
  const auto message = [&](int tag) {
    return victim.others[0].sealed(
        {.kind = FrameKind::message, .tag = tag, .context = kContext, .bytes = 8}, 8);
  };
  Bytes first = message(0);
  Bytes second = message(1);
  GetParam().change(first, second);
  first.insert(first.end(), second.begin(), second.end());
  victim.others[0].put(first);
  victim.expectExpelled(1);
  EXPECT_STREQ(victim.engine->whyGone(1), kForged);
  EXPECT_FALSE(requests[1]->done);
  EXPECT_FALSE(victim.engine->isGone(2));
  for (const auto& request : requests) victim.engine->cancel(*request);
}

void change(Bytes& frame, std::size_t at) { frame[at] = static_cast<char>(frame[at] ^ 1); }
const Middle kMiddles[] = {
    {"nothingOfTheSecond", [](Bytes&, Bytes& second) { second.assign(kSealedHead, 'x'); }},
    {"otherHead", [](Bytes& first, Bytes&) { change(first, offsetof(FrameHead, tag)); }},
    {"otherLength", [](Bytes& first, Bytes&) { change(first, offsetof(FrameHead, bytes)); }},
    {"otherTagOfTheHead", [](Bytes& first, Bytes&) { change(first, sizeof(FrameHead)); }},
    {"otherPayload", [](Bytes& first, Bytes&) { change(first, kSealedHead); }},
    {"otherTagOfThePayload", [](Bytes& first, Bytes&) { change(first, first.size() - 1); }},
    {"repeated", [](Bytes& first, Bytes& second) { second = first; }},
    {"inAnotherOrder", [](Bytes& first, Bytes& second) { std::swap(first, second); }},
    {"leftOut", [](Bytes& first, Bytes&) { first.clear(); }},
    {"cut", [](Bytes& first, Bytes&) { first.pop_back(); }},
    {"lengthened", [](Bytes& first, Bytes&) { first.push_back('x'); }},
};
INSTANTIATE_TEST_SUITE_P(Changes, TcpMiddle, testing::ValuesIn(kMiddles),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TcpMiddles, FramesOfAnotherConnectionOrDirectionEndThisOne) {
  Victim victim(3);
  const FrameHead head{.kind = FrameKind::message, .context = kContext};
  victim.others[0].put(victim.others[1].sealed(head));
  victim.expectExpelled(1);
  const std::unique_ptr<Request> sent(victim.engine->send(kContext, nullptr, 0, 2, 0));
  victim.others[1].put(victim.others[1].sentBack(FrameKind::message));
  victim.expectExpelled(2);
}

class TcpSealsAll : public testing::TestWithParam<bool> {};

/// Where neither side asks for more, heads and short payloads alone are sealed.
TEST_P(TcpSealsAll, AndThenALongPayloadThatWasChangedEndsTheConnection) {
  Victim victim(3, GetParam());
  Offered offered(victim);
  Bytes frame = victim.others[0].sealed(
      {.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id}, Offered::kBytes);
  change(frame, kSealedHead + Offered::kBytes / 2);
  victim.others[0].put(frame);
  victim.progressUntil([&] { return offered.request->done || victim.engine->isGone(1); });
  EXPECT_NE(offered.request->done, GetParam());
  EXPECT_EQ(victim.engine->isGone(1), GetParam());
  // What came lies behind no place but that of the receive.
  EXPECT_EQ(std::count(offered.place.begin() + Offered::kBytes, offered.place.end(), 0),
            Offered::kBehind);
  victim.engine->cancel(*offered.request);
}
INSTANTIATE_TEST_SUITE_P(Asked, TcpSealsAll, testing::Bool());

TEST(TcpSeals, LongPayloadsGoInPiecesEachWay) {
  // More than the system takes at once, to a rank that takes its time.
  constexpr std::size_t kBytes = (std::size_t{32} << 20) + 7;
  const int port = freePort();
  std::array<std::unique_ptr<Engine>, 2> engines;
  for (int rank : {0, 1}) {
    engines[static_cast<std::size_t>(rank)] =
        std::make_unique<Engine>(settingsOf(rank, 2, port, rank == 1));
  }
  std::thread other([&] { engines[1]->meet(kMostMs); });
  engines[0]->meet(kMostMs);
  other.join();
  for (auto& engine : engines) engine->mailbox(kContext).name({0, 1}, engine->rank());
  std::vector<char> data(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) data[i] = static_cast<char>(i * 7 / 5);
  for (std::size_t from : {0u, 1u}) {
    std::vector<char> place(kBytes);
    Engine& sender = *engines[from];
    Engine& receiver = *engines[1 - from];
    const std::unique_ptr<Request> sent(
        sender.send(kContext, data.data(), kBytes, receiver.rank(), 0));
    const std::unique_ptr<Request> got(
        receiver.receive(kContext, place.data(), kBytes, sender.rank(), 0));
    waitUntil([&] {
      sender.progress();
      receiver.progress();
      return sent->done && got->done;
    });
    EXPECT_EQ(got->error, 0);
    EXPECT_EQ(place, data);
  }
}

/// Takes messages without bytes.
struct Counting final : Frames {
  bool allows(const Connection&, const FrameHead&) const override { return true; }
  Landing land(Connection&, const FrameHead&) override { return {}; }
  void landed(Connection&, const FrameHead&, Landing) override { ++messages; }
  void sent(Request&) override {}
  int messages = 0;
};

TEST(TcpConnection, LeavesNothingInItsBufferWhereItReadsNoMore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  const auto seals = [](Side side) { return sealsOf("of this test", side, {}, {}); };
  Counting frames;
  Connection sender(Fd{ends[0]}, 1, frames, seals(Side::connecting));
  Connection receiver(Fd{ends[1]}, 0, frames, seals(Side::accepting));
  for (int i = 0; i < 3; ++i) {
    Outgoing message;
    message.head.kind = FrameKind::message;
    sender.push(std::move(message));
  }
  receiver.read(1);
  EXPECT_EQ(frames.messages, 3);
}

// Rank 0 takes it all the same, to tell it.
TEST(TcpHandshake, FailsWithARankOfAJobOfAnotherSize) {
  const std::string secret = "of this test";
  for (const int rank : {0, 1}) {
    for (const int size : {3, 4}) {
      std::array<int, 2> ends{};
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
      Handshake accepting(Fd{ends[0]}, rank, 3, false, secret);
      Handshake connecting(Fd{ends[1]}, Hello{.rank = 2, .size = size, .peer = rank, .port = 1},
                           secret);
      auto status = Handshake::Status::underway;
      waitUntil([&] {
        connecting.go();
        status = accepting.go();
        return status != Handshake::Status::underway;
      });
      EXPECT_EQ(status == Handshake::Status::done, rank == 0 || size == 3) << rank << " " << size;
    }
  }
}

TEST(TcpStrangers, AreToldNothingBeforeTheyHaveProvedThemselves) {
  const int port = freePort();
  Engine engine(settingsOf(0, 2, port));
  std::thread rendezvous([&] { engine.meet(kMostMs); });
  {
    Forger stranger(port);
    stranger.put(Bytes(sizeof(Greeting), '\0'));  // what it is told is as long
    Hello hello;
    hello.rank = hello.port = 1;
    hello.size = 2;
    Bytes words(sizeof(hello) + sizeof(Bytes32));
    std::memcpy(words.data(), &hello, sizeof(hello));
    stranger.put(words);
    EXPECT_EQ(stranger.rest(), sizeof(Greeting));
  }
  // Who knows the secret is not rank 0 all the same.
  EXPECT_EQ(Forger(0, 2, port).rest(), 0u);
  const Forger rank(1, 2, port);
  rendezvous.join();
}

TEST(TcpStrangers, PushOutTheOldestOfThemAndNoRank) {
  const int port = freePort();
  Engine engine(settingsOf(0, 2, port));
  std::thread rendezvous([&] { engine.meet(kMostMs); });
  std::deque<Forger> crowd;
  for (int i = 0; i < 300; ++i) crowd.emplace_back(port);
  const Forger rank(1, 2, port);
  rendezvous.join();
  // It has come, and the oldest have gone without having said a word.
  EXPECT_EQ(crowd.front().rest(), sizeof(Greeting));
}

}  // namespace
}  // namespace gradlink::messages::tcp
