// Processes of the same user that do not know the job's secret, at the address of a rendezvous:
// what they say counts for nothing.
#include <sys/resource.h>

#include "test/process/strangers.h"

namespace gradlink::test {
namespace {

using shm::File;
using shm::Word;

TEST(Strangers, AreNoRanksWhateverTheySay) {
  const std::string name = freshName();
  Child first = rankOf(name, 0, 3);
  std::vector<File> strangers;
  for (const Word word : {Word::ready, Word::ready, Word::gaveUp, Word::hello, Word::welcome,
                          Word::start, Word::failed, Word::challenge, Word::proof, Word{99}}) {
    for (const std::string& text : {std::string(), std::string(64, 'x'), std::string(1000, '\0')}) {
      strangers.push_back(connectTo(name));
      shm::sendWord(strangers.back(), word, 1, 3, text);
    }
  }
  // Nothing of theirs is left to be heard when the ranks come.
  for (const File& stranger : strangers) EXPECT_TRUE(closedByOther(stranger));
  expectMeet(name, 3, {&first});
}

// What a rank proves itself with is of use on its own connection alone.
TEST(Strangers, CannotUseTheProofOfARank) {
  const std::string name = freshName();
  Child first = rankOf(name, 0, 2);
  const auto options = optionsFor(name, 1, 2);
  const File one = connectTo(name);
  const File other = connectTo(name);
  const std::string proof = proofText(options, challengeOf(one), 1, 2);
  EXPECT_NE(challengeOf(other), "");
  shm::sendWord(other, Word::hello, 1, 2, proof);
  EXPECT_TRUE(closedByOther(other));
  // Nor with another rank or size in it.
  shm::sendWord(one, Word::hello, 0, 2, proof);
  EXPECT_TRUE(closedByOther(one));
  expectMeet(name, 2, {&first});
}

TEST(Strangers, RanksAreWithinTheirSize) {
  const std::string name = freshName();
  Child first = rankOf(name, 0, 2);
  for (const int rank : {-1, 2, 1 << 30}) {
    const File socket = connectTo(name);
    const std::string proof = proofText(optionsFor(name, 1, 2), challengeOf(socket), rank, 2);
    shm::sendWord(socket, Word::hello, rank, 2, proof);
    EXPECT_TRUE(closedByOther(socket));
  }
  expectMeet(name, 2, {&first});
}

// It had its place, and went before all had come: the next of its rank takes it.
TEST(Strangers, ARankThatWasReadyAndWentIsNotCounted) {
  const std::string name = freshName();
  Child first = rankOf(name, 0, 3);
  {
    const File gone = connectTo(name);
    const std::string proof = proofText(optionsFor(name, 1, 3), challengeOf(gone), 1, 3);
    shm::sendWord(gone, Word::hello, 1, 3, proof);
    shm::Packet packet;
    std::string_view text;
    do {
      ASSERT_EQ(shm::receivePacket(gone, packet, text), shm::Got::packet);
    } while (packet.word != Word::welcome);
    shm::sendWord(gone, Word::ready, 1, 3);
  }
  expectMeet(name, 3, {&first});
}

/// Holds the address as a leader does, and answers each that comes with `word` until told to end.
Child impostor(const std::string& name, Scoreboard* board, Word word) {
  return Child([=]() -> std::string {
    const shm::RendezvousAddress address = addressOf(name);
    const File listener = shm::makeRendezvousSocket();
    if (bind(listener.get(), address.get(), address.length()) != 0) return "cannot bind";
    if (listen(listener.get(), 64) != 0) return "cannot listen";
    board->ready.fetch_add(1);
    std::vector<File> guests;
    while (board->go.load() == 0) {
      File guest(accept(listener.get(), nullptr, nullptr));
      if (!guest) {
        usleep(200);
        continue;
      }
      shm::sendWord(guest, Word::challenge, 0, 2, std::string(shm::kNonceBytes, 'x'));
      shm::sendWord(guest, word, 0, 2, std::string(shm::kNonceBytes, 'x'));
      board->ready.fetch_add(1);
      guests.push_back(std::move(guest));
    }
    return {};
  });
}

TEST(Strangers, ThatHoldTheAddressAreWaitedFor) {
  for (const Word word : {Word::failed, Word::start, Word::proof}) {
    Scoreboard* board = makeScoreboard();
    const std::string name = freshName();
    Child stranger = impostor(name, board, word);
    board->waitFor(board->ready, 1);
    Child first = rankOf(name, 0, 2);
    Child second = rankOf(name, 1, 2);
    board->waitFor(board->ready, 4);
    board->go.store(1);
    expectFine({&stranger, &first, &second});
  }
}

TEST(Strangers, ThatHoldTheAddressAreToldOfAtTheDeadline) {
  Scoreboard* board = makeScoreboard();
  const std::string name = freshName();
  Child stranger = impostor(name, board, Word::failed);
  board->waitFor(board->ready, 1);
  Child rank = rankOf(name, 0, 2, 300);
  const std::string result = rank.wait();
  expectThrew(result, "ERR_MISMATCH", -1);
  EXPECT_NE(result.find("job's secret"), std::string::npos) << result;
  board->go.store(1);
  EXPECT_EQ(stranger.wait(), "");
}

/// Sends a byte with two descriptors.
void sendDescriptors(const File& socket) {
  char byte = 0;
  iovec part{&byte, 1};
  const int passed[2] = {socket.get(), socket.get()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(passed))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(passed));
  std::memcpy(CMSG_DATA(header), passed, sizeof(passed));
  EXPECT_EQ(sendmsg(socket.get(), &message, 0), 1);
}

TEST(Strangers, DoNotUseUpTheDescriptorsOfTheLeader) {
  const std::string name = freshName();
  Child first = Child([&]() -> std::string {
    const rlimit few{128, 128};
    setrlimit(RLIMIT_NOFILE, &few);
    auto comm = shm::join(optionsFor(name, 0, 2));
    return runRank(*comm, {Op::allReduce, comm->size(), 1000});
  });
  // Those that say nothing stay open; those that pass descriptors are closed.
  std::vector<File> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(connectTo(name));
    const File loud = connectTo(name);
    sendDescriptors(loud);
    EXPECT_TRUE(closedByOther(loud));
  }
  expectMeet(name, 2, {&first});
}

/// So many connections of another user to a leader, each of which it closes.
Child crowdOfAnother(const std::string& name, int connections) {
  return Child([=, address = addressOf(name)]() -> std::string {
    becomeAnother();
    for (int i = 0; i < connections; ++i) {
      if (!closedByOther(connectTo(address))) return "not closed";
    }
    return {};
  });
}

TEST(Strangers, AreToldOfWhereRanksAreMissing) {
  const int ofAnother = canBecomeAnother() ? 40 : 0;
  const std::string name = freshName();
  Child first = rankOf(name, 0, 3);
  if (ofAnother > 0) {
    EXPECT_EQ(crowdOfAnother(name, ofAnother).wait(), "");
  }
  std::vector<File> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connectTo(name));
  // Rank 1, which gives up.
  const File second = connectTo(name);
  for (const File& stranger : silent) EXPECT_NE(challengeOf(stranger), "");
  const std::string proof = proofText(optionsFor(name, 1, 3), challengeOf(second), 1, 3);
  shm::sendWord(second, Word::hello, 1, 3, proof);
  shm::sendWord(second, Word::gaveUp, 1, 3);
  const std::string result = first.wait();
  expectThrew(result, "ERR_TIMEOUT", 2);
  EXPECT_NE(result.find(" " + std::to_string(ofAnother + 3) + " connections"), std::string::npos)
      << result;
}

// However fast they come: the queue of the address has room for ranks again and again.
TEST(Strangers, OfAnotherUserKeepNoRankAway) {
  if (!canBecomeAnother()) GTEST_SKIP() << "needs root, to become another user";
  Scoreboard* board = makeScoreboard();
  const std::string name = freshName();
  Child first = rankOf(name, 0, 3);
  std::vector<Child> crowd;
  for (int i = 0; i < 2; ++i) {
    crowd.emplace_back([&, address = addressOf(name)]() -> std::string {
      becomeAnother();
      std::vector<File> open(200);
      for (std::size_t made = 0; board->go.load() == 0; ++made) {
        File& socket = open[made % open.size()];
        socket = shm::makeRendezvousSocket();
        if (connect(socket.get(), address.get(), address.length()) == 0) board->ready.fetch_add(1);
      }
      return {};
    });
  }
  board->waitFor(board->ready, 500);
  expectMeet(name, 3, {&first});
  board->go.store(1);
  for (Child& child : crowd) EXPECT_EQ(child.wait(), "");
}

// Whoever reads one name in the list of sockets cannot work out another.
TEST(RendezvousAddresses, HaveNothingInCommonButTheUser) {
  const std::string user = "@gradlink/" + std::to_string(getuid()) + "/";
  const std::string world = shownAddress("world");
  const std::string split = shownAddress("world/split 1/0");
  const std::string next = shownAddress("world", 1);
  ASSERT_EQ(world.substr(0, user.size()), user);
  ASSERT_EQ(split.substr(0, user.size()), user);
  EXPECT_EQ(world.size(), user.size() + 64);
  EXPECT_NE(world.substr(user.size(), 16), split.substr(user.size(), 16));
  EXPECT_NE(world.substr(user.size(), 16), next.substr(user.size(), 16));
  auto other = optionsFor("world", 0, 1);
  other.job = "another";
  const shm::RendezvousAddress address(other, 0);
  const auto* value = reinterpret_cast<const sockaddr_un*>(address.get());
  EXPECT_NE(world.substr(1), std::string(value->sun_path + 1, world.size() - 1));
}

}  // namespace
}  // namespace gradlink::test
