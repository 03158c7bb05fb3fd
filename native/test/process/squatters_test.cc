// Another user's processes that hold addresses of a rendezvous, which were public once: the ranks
// meet at an address that is left, all of them at the same, or are told.
#include "shm/rendezvous/addresses.h"
#include "test/process/strangers.h"

namespace gradlink::test {
namespace {

using shm::File;

File holding(const shm::RendezvousAddress& address, int queue) {
  File socket = shm::makeRendezvousSocket();
  waitUntil([&] { return bind(socket.get(), address.get(), address.length()) == 0; });
  if (queue >= 0 && listen(socket.get(), queue) != 0) std::abort();
  return socket;
}

class Squatters : public testing::Test {
 protected:
  void SetUp() override {
    if (!canBecomeAnother()) GTEST_SKIP() << "needs root, to become another user";
  }

  /// A process of another user that holds what `hold` returns until it is released.
  Child squatter(const std::function<std::vector<File>()>& hold) const {
    Child child = Child([=, this]() -> std::string {
      becomeAnother();
      const std::vector<File> held = hold();
      board_->ready.fetch_add(1);
      board_->waitFor(board_->go, 1);
      return {};
    });
    board_->waitFor(board_->ready, 1);
    return child;
  }

  /// One that listens at the first addresses.
  Child squat(int count) const {
    std::vector<shm::RendezvousAddress> addresses;
    for (int number = 0; number < count; ++number) addresses.push_back(addressOf(name_, number));
    return squatter([=] {
      std::vector<File> held;
      for (const shm::RendezvousAddress& address : addresses) held.push_back(holding(address, 8));
      return held;
    });
  }

  void release(Child& squatter) {
    board_->go.store(1);
    EXPECT_EQ(squatter.wait(), "");
  }

  Child rank(int rank, int size) { return rankOf(name_, rank, size); }

  /// Until so many sockets of the list have that address.
  void waitForSockets(int number, int count) const {
    waitUntil([&] { return socketsOf(name_, number) >= count; });
  }

  Scoreboard* board_ = makeScoreboard();
  const std::string name_ = freshName();
};

TEST_F(Squatters, ArePassedBy) {
  Child other = squat(2);
  expectMeet(name_, 3);
  release(other);
}

// One binds and does not listen, one listens and has a full queue: neither can be asked who it is.
TEST_F(Squatters, ThatSayNothingArePassedBy) {
  const shm::RendezvousAddress mute = addressOf(name_, 0);
  const shm::RendezvousAddress full = addressOf(name_, 1);
  Child other = squatter([=] {
    std::vector<File> held;
    held.push_back(holding(mute, -1));
    held.push_back(holding(full, 0));
    do {
      held.push_back(shm::makeRendezvousSocket());
    } while (connect(held.back().get(), full.get(), full.length()) == 0);
    return held;
  });
  expectMeet(name_, 3);
  release(other);
}

// Who watches the list of sockets binds each address once it has been public.
TEST_F(Squatters, OfOneRendezvousDoNotStopTheNext) {
  constexpr int kRendezvous = 4;
  std::vector<shm::RendezvousAddress> addresses;
  for (int number = 0; number < kRendezvous; ++number)
    addresses.push_back(addressOf(name_, number));
  Child other = Child([&]() -> std::string {
    becomeAnother();
    std::vector<File> held;
    for (int number = 0; number < kRendezvous; ++number) {
      board_->waitFor(board_->go, number + 1);
      held.push_back(holding(addresses[static_cast<std::size_t>(number)], 8));
      board_->ready.fetch_add(1);
    }
    return {};
  });
  for (int rendezvous = 0; rendezvous < kRendezvous; ++rendezvous) {
    expectMeet(name_, 2);
    board_->go.store(rendezvous + 1);
    board_->waitFor(board_->ready, rendezvous + 1);
  }
  EXPECT_EQ(other.wait(), "");
}

TEST_F(Squatters, OfAllAddressesAreToldOf) {
  Child other = squat(shm::kMostAddresses);
  Child first = rank(0, 2);
  Child second = rank(1, 2);
  expectThrew(first.wait(), "ERR_MISMATCH", -1);
  expectThrew(second.wait(), "ERR_MISMATCH", -1);
  release(other);
}

TEST_F(Squatters, ThatGoLeaveTheirAddressToTheLeader) {
  Child other = squat(1);
  Child first = rank(0, 2);
  waitForSockets(1, 1);
  release(other);
  waitForSockets(0, 1);
  // Where the second rank looks first.
  expectMeet(name_, 2, {&first});
}

// Two ranks meet beside the squatter. The third comes when it has gone, before they could see it.
TEST_F(Squatters, ThatGoDoNotPartTheRanks) {
  Child other = squat(1);
  Child first = rank(0, 3);
  waitForSockets(1, 1);
  Child second = rank(1, 3);
  waitForSockets(1, 2);
  first.stop();
  release(other);
  Child third = rank(2, 3);
  waitForSockets(0, 1);
  first.goOn();
  expectFine({&first, &second, &third});
}

// The leader is killed, and its address taken before the others come back to it.
TEST_F(Squatters, OfALostLeadersAddressArePassedBy) {
  Child leader = rank(0, 3);
  waitForSockets(0, 1);
  Child second = rank(1, 3);
  waitForSockets(0, 2);
  second.stop();
  leader.kill();
  EXPECT_EQ(leader.wait(), "killed");
  Child other = squat(1);
  second.goOn();
  Child first = rank(0, 3);
  Child third = rank(2, 3);
  expectFine({&first, &second, &third});
  release(other);
}

}  // namespace
}  // namespace gradlink::test
