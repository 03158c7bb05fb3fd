// A rank over TCP with another that knows the secret and sends whatever chance says, sealed as it
// should be; and first words of strangers. Nothing but the end of that connection comes of it;
// sanitizers look on.
#include "test/chance.h"
#include "test/messages/tcp_forger.h"

namespace gradlink::messages::tcp {
namespace {

using test::attackSeed;
using test::Chance;

/// Those of lengths.
constexpr std::uint64_t kBoundaries[] = {kMostAtOnce};

/// Receives and sends of rank 0 that frames may be for.
class Traffic {
 public:
  explicit Traffic(Victim& victim) : victim_(victim) {
    victim.engine->mailbox(kContext).name({0, 1}, 0);
  }
  ~Traffic() {
    while (!all_.empty()) giveUp();
  }
  void add(Chance& chance) {
    constexpr std::size_t kLengths[] = {0, 8, 300, kMostAtOnce, kMostAtOnce + 1};
    std::vector<char> memory(kLengths[chance.below(std::size(kLengths))]);
    const int tag = static_cast<int>(chance.below(4));
    Engine& engine = *victim_.engine;
    Request* const request = chance.oneIn(2)
                                 ? engine.receive(kContext, memory.data(), memory.size(), 1, tag)
                                 : engine.send(kContext, memory.data(), memory.size(), 1, tag);
    all_.emplace_back(request, std::move(memory));
    if (all_.size() == kMost) giveUp();
  }

 private:
  static constexpr std::size_t kMost = 16;
  void giveUp() {
    std::unique_ptr<Request>& request = all_.front().first;
    victim_.engine->cancel(*request);
    if (!request->receives) victim_.engine->release(request.release());
    all_.pop_front();
  }
  Victim& victim_;
  std::deque<std::pair<std::unique_ptr<Request>, std::vector<char>>> all_;
};

FrameHead headOf(Chance& chance) {
  FrameHead head;
  head.kind = static_cast<FrameKind>(chance.below(4));
  head.tag = static_cast<std::int32_t>(chance.below(4));
  head.context = kContext + (chance.oneIn(20) ? chance.below(3) : 0);
  const bool offers = head.kind == FrameKind::offer;
  head.bytes = offers ? kMostAtOnce + 1 + chance.below(2) : chance.below(300);
  head.id = 1 + chance.below(20);
  head.other = chance.below(20);
  // Most of them are such as ranks send: those that are not cost a connection.
  if (head.kind == FrameKind::accept) head.other = 0;
  if (head.kind == FrameKind::payload && !chance.oneIn(60)) head.kind = FrameKind::message;
  if (!chance.oneIn(80)) return head;
  const auto number = [&] { return chance.number(kBoundaries); };
  const std::function<void()> changes[] = {[&] { head.kind = static_cast<FrameKind>(number()); },
                                           [&] { head.tag = static_cast<std::int32_t>(number()); },
                                           [&] { head.context = number(); },
                                           [&] { head.bytes = number(); },
                                           [&] { head.id = number(); },
                                           [&] { head.other = number(); }};
  changes[chance.below(std::size(changes))]();
  return head;
}

/// How many frames were taken for what they say.
std::uint64_t sendFrames(std::uint64_t seed, std::uint64_t frames) {
  std::uint64_t taken = 0;
  std::uint64_t sent = 0;
  for (std::uint64_t round = 0; sent < frames; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    Chance chance(seed + round);
    Victim victim(2, chance.oneIn(2));
    Traffic traffic(victim);
    for (int i = 0; i < 200 && !victim.engine->isGone(1) && sent < frames; ++i, ++sent, ++taken) {
      if (chance.oneIn(3)) traffic.add(chance);
      const FrameHead head = headOf(chance);
      const bool follows = head.kind != FrameKind::offer && head.kind != FrameKind::accept;
      // No more than a rank may send: what follows a longer head is never read.
      victim.others[0].send(head,
                            follows ? std::min<std::uint64_t>(head.bytes, 2 * kMostAtOnce) : 0);
      victim.engine->progress();
      victim.others[0].drain();
    }
    if (victim.engine->isGone(1)) --taken;
  }
  return taken;
}

TEST(TcpFuzz, OfFramesEndsAtMostTheConnection) {
  constexpr std::uint64_t kFrames = 3000;
  const std::uint64_t taken = sendFrames(1, kFrames);
  EXPECT_GT(taken, kFrames / 2);
  EXPECT_LT(taken, kFrames);
}

/// A million in all.
class SlowTcpFuzz : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, SlowTcpFuzz, testing::Range(std::uint64_t{0}, std::uint64_t{10}));

TEST_P(SlowTcpFuzz, OfFramesEndsAtMostTheConnection) {
  EXPECT_GT(sendFrames(attackSeed() + GetParam() * 1000000, 100000), 0u);
}

/// First words on a connection: right ones with some bytes changed, cut or lengthened.
void sayFirstWords(std::uint64_t seed, int times) {
  Chance chance(seed);
  for (int i = 0; i < times; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    const Fd stranger(ends[1]);
    const bool accepts = chance.oneIn(2);
    Hello hello{.rank = accepts ? 1 : 0, .size = 2, .peer = accepts ? 0 : 1, .port = 1};
    Greeting greeting;
    std::vector<char> words(accepts ? sizeof(hello) + sizeof(Bytes32)
                                    : sizeof(greeting) + sizeof(Bytes32));
    std::memcpy(words.data(), accepts ? static_cast<void*>(&hello) : &greeting,
                accepts ? sizeof(hello) : sizeof(greeting));
    for (std::uint64_t changes = chance.below(4); changes > 0; --changes) {
      words[chance.below(words.size())] = static_cast<char>(chance.below(256));
    }
    words.resize(chance.oneIn(4) ? chance.below(2 * words.size()) : words.size());
    Handshake handshake = accepts ? Handshake(Fd(ends[0]), 0, 2, false, "of this test")
                                  : Handshake(Fd(ends[0]), hello, "of this test");
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t some = 1 + chance.below(words.size() - at);
      if (::send(stranger.get(), words.data() + at, some, MSG_NOSIGNAL) < 0) break;
      at += some;
      if (handshake.go() == Handshake::Status::failed) break;
    }
    EXPECT_NE(handshake.go(), Handshake::Status::done);
  }
}

TEST(TcpFuzz, OfFirstWordsProvesNothing) { sayFirstWords(1, 2000); }
TEST_P(SlowTcpFuzz, OfFirstWordsProvesNothing) { sayFirstWords(attackSeed() + GetParam(), 100000); }

}  // namespace
}  // namespace gradlink::messages::tcp
