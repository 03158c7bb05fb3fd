// What the workers of a store without servers agree on: what is ready, and what of it comes first.
#include "kvstore/allreduce/key_agreement.h"

#include "test/threads_support.h"

namespace gradlink::test {
namespace {

Announcement pushOfKey(std::uint32_t key, std::int32_t priority) {
  return {.key = key, .priority = priority, .count = 1};
}

std::vector<std::uint32_t> keysOf(const std::vector<ReadySum>& ready) {
  std::vector<std::uint32_t> keys;
  for (const ReadySum& one : ready) keys.push_back(one.announced.key);
  return keys;
}

using KeyList = std::vector<std::uint32_t>;

TEST(KvstoreAgreement, TheMostUrgentOnAnyWorkerIsFirstThenTheFirstToldOf) {
  expectNone(onRanks(3, [](Communicator& comm, int rank) {
    Agreement agreement(comm);
    // Key 2 is urgent for worker 1 alone, key 3 for none.
    for (const std::uint32_t key : {0, 1, 2, 3}) {
      const std::int32_t own = key == 2 && rank == 1 ? 9 : key == 3 ? -1 : 0;
      agreement.announce(pushOfKey(key, own));
    }
    EXPECT_TRUE(agreement.hasPending());
    agreement.exchange(20000);
    EXPECT_EQ(keysOf(agreement.takeReady()), (KeyList{2, 0, 1, 3}));
    EXPECT_TRUE(agreement.takeReady().empty());
    EXPECT_FALSE(agreement.hasPending());
  }));
}

TEST(KvstoreAgreement, IsReadyOnceAllHaveToldAndOnceAKeyAtATime) {
  expectNone(onRanks(2, [](Communicator& comm, int rank) {
    Agreement agreement(comm);
    agreement.announce(pushOfKey(5, 0));
    agreement.announce(pushOfKey(5, 0));
    if (rank == 0) agreement.announce(pushOfKey(6, 0));
    agreement.exchange(20000);
    EXPECT_EQ(keysOf(agreement.takeReady()), KeyList{5});
    EXPECT_EQ(keysOf(agreement.takeReady()), KeyList{5});
    EXPECT_TRUE(agreement.takeReady().empty());
    EXPECT_EQ(agreement.hasPending(), rank == 0);
    if (rank == 1) agreement.announce(pushOfKey(6, 0));
    agreement.exchange(20000);
    EXPECT_EQ(keysOf(agreement.takeReady()), KeyList{6});
  }));
}

// One more than a round of telling takes: the rest is told with the next, and nobody leaves before.
TEST(KvstoreAgreement, MoreThanOneRoundTakesIsToldWithTheNext) {
  expectNone(onRanks(2, [](Communicator& comm, int rank) {
    Agreement agreement(comm);
    for (std::uint32_t key = 0; key < 21; ++key) agreement.announce(pushOfKey(key, 0));
    if (rank == 0) agreement.leave();
    agreement.exchange(20000);
    EXPECT_EQ(agreement.takeReady().size(), 20U);
    EXPECT_EQ(agreement.root(), 0);
    agreement.exchange(20000);
    EXPECT_EQ(keysOf(agreement.takeReady()), KeyList{20});
    EXPECT_EQ(agreement.root(), 1);
    // Of who has left nobody waits for anything.
    if (rank == 1) agreement.announce(pushOfKey(3, 0));
    agreement.exchange(20000);
    EXPECT_EQ(keysOf(agreement.takeReady()), KeyList{3});
    EXPECT_FALSE(agreement.everybodyLeft());
  }));
}

TEST(KvstoreAgreement, NamesWhoBringsMoreRowsThanThereAre) {
  for (const std::uint32_t rows : {2U, 3U}) {
    const auto errors = onRanks(2, [rows](Communicator& comm, int rank) {
      Agreement agreement(comm);
      agreement.announce({.count = 6, .rowLength = 3, .rows = rank == 1 ? rows : 1});
      agreement.exchange(20000);
    });
    rows == 2 ? expectNone(errors) : expectAll(errors, ErrorCode::mismatch, 1);
  }
}

TEST(KvstoreAgreement, NamesTheKeyAndWhoHasNotComeAtTheDeadline) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) {
    Agreement agreement(comm);
    const bool absent = rank == 1 || rank == 2;
    if (!absent) agreement.announce(pushOfKey(1, 0));
    agreement.exchange(20000);
    agreement.checkTimeout(1e9, {"a", "b"});
    const Deadline deadline = Deadline::in(15000);
    std::string said;
    // 20 ms, not seconds; who announced nothing waits for nobody.
    while (!absent && said.empty() && !deadline.passed()) {
      if (const auto error = errorOf([&] { agreement.checkTimeout(20, {"a", "b"}); })) {
        EXPECT_EQ(error->code, ErrorCode::timeout);
        EXPECT_EQ(error->rank, 1);
        said = error->what();
      }
    }
    if (absent) return agreement.checkTimeout(0, {"a", "b"});
    EXPECT_EQ(lacking(said, {"push of key b", "have not arrived: 1, 2."}), "") << said;
  }));
}

}  // namespace
}  // namespace gradlink::test
