// What a rank does with frames that no rank sends, from somebody who knows the job's secret: it
// ends the connection, and nothing of them is used.
#include "test/message_support.h"
#include "test/messages/tcp_forger.h"

namespace gradlink::messages::tcp {
namespace {

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
const Forged kForgedHeads[] = {
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
INSTANTIATE_TEST_SUITE_P(Heads, TcpForgedFrames, testing::ValuesIn(kForgedHeads),
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

TEST(TcpFrames, AReceiveThatIsGivenUpIsWrittenNoMore) {
  Victim victim(3);
  Offered offered(victim);
  const std::vector<char> frame = victim.others[0].sealed(
      {.kind = FrameKind::payload, .bytes = Offered::kBytes, .id = offered.id}, Offered::kBytes);
  const auto half = frame.begin() + Offered::kBytes / 2;
  victim.others[0].put({frame.begin(), half});
  victim.progressUntil([&] { return offered.place[Offered::kBytes / 4] != 0; });
  victim.engine->cancel(*offered.request);
  std::fill(offered.place.begin(), offered.place.end(), 0);
  victim.others[0].put({half, frame.end()});
  // What comes behind it is heard.
  char place = 0;
  const std::unique_ptr<Request> next(victim.engine->receive(kContext, &place, 1, 1, 9));
  victim.others[0].send({.kind = FrameKind::message, .tag = 9, .context = kContext, .bytes = 1}, 1);
  victim.progressUntil([&] { return next->done; });
  EXPECT_EQ(offered.place, std::vector<char>(offered.place.size()));
}

TEST(TcpFrames, ASendThatIsGivenUpIsAnsweredWithNothing) {
  Victim victim(2);
  const std::vector<char> data(Offered::kBytes, 'B');
  Request* const request = victim.engine->send(kContext, data.data(), data.size(), 1, 0);
  const std::uint64_t id = victim.others[0].next(FrameKind::offer).id;
  victim.engine->release(request);
  victim.others[0].send({.kind = FrameKind::accept, .bytes = data.size(), .id = id, .other = 1});
  std::atomic<bool> answered{false};
  std::jthread reader([&] {
    EXPECT_EQ(victim.others[0].next(FrameKind::payload).bytes, 0u);
    answered = true;
  });
  victim.progressUntil([&] { return answered.load(); });
}

TEST(TcpFrames, WhatWasToGoToALostRankEnds) {
  Victim victim(2);
  const std::vector<char> data(Offered::kBytes, 'B');
  const std::unique_ptr<Request> offered(
      victim.engine->send(kContext, data.data(), data.size(), 1, 0));
  // More than the connection takes at once.
  std::vector<std::unique_ptr<Request>> waiting;
  for (int i = 0; i < 2000; ++i) {
    waiting.emplace_back(victim.engine->send(kContext, data.data(), kMostAtOnce, 1, 1));
  }
  EXPECT_FALSE(waiting.back()->done);
  victim.others.clear();
  victim.progressUntil([&] { return victim.engine->isGone(1); });
  EXPECT_TRUE(offered->done);
  for (const auto& one : waiting) EXPECT_TRUE(one->done);
}

/// Rank 1 takes this for the end of rank 0.
void expectLoss(const FrameHead& head, const std::vector<char>& payload) {
  const Fd listener = listenAt(resolve("127.0.0.1", 0));
  Engine engine(settingsOf(1, 2, ownAddress(listener).port()));
  std::optional<Error> error;
  std::thread rendezvous([&] { error = test::errorOf([&] { engine.meet(kMostMs); }); });
  Forger zero(listener);
  zero.put(zero.sealed(head, payload));
  rendezvous.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::peerLost);
  EXPECT_EQ(error->rank, 0);
}

class TcpForgedRendezvous : public testing::TestWithParam<Forged> {};

TEST_P(TcpForgedRendezvous, LoseRankZero) {
  const FrameHead& head = GetParam().head;
  expectLoss(head, std::vector<char>(head.bytes, 'A'));
}

TEST(TcpForgedTable, WithoutPortsLosesRankZero) {
  Entry portless[2];
  for (Entry& one : portless) one.address = resolve("127.0.0.1", 0);
  std::vector<char> payload(sizeof(portless));
  std::memcpy(payload.data(), portless, sizeof(portless));
  expectLoss({.kind = FrameKind::table, .bytes = payload.size()}, payload);
}

const Forged kForgedRendezvous[] = {
    {"tableOfOneRank", {.kind = FrameKind::table, .bytes = sizeof(Entry)}},
    {"tableOfNoAddresses", {.kind = FrameKind::table, .bytes = 2 * sizeof(Entry)}},
    {"refusalOfAMegabyte", {.kind = FrameKind::failed, .bytes = 1 << 20, .id = 1}},
    {"refusalWithAnUnknownCode", {.kind = FrameKind::failed, .bytes = 5, .id = 99}},
    {"refusalThatBlamesNoRank", {.kind = FrameKind::failed, .tag = 2, .bytes = 5}},
};
INSTANTIATE_TEST_SUITE_P(Heads, TcpForgedRendezvous, testing::ValuesIn(kForgedRendezvous),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradlink::messages::tcp
