// The MPI engine under real launchers, of Open MPI and of MPICH.
#include "test/messages/jobs.h"
#include "test/message_support.h"

namespace gradlink::test {
namespace {

TEST_P(EachMpi, IsTheLaunchers) { expectFine(2, std::string("library ") + GetParam()); }

// One job a case: beside other work ranks that wait for each other are the slower the longer it
// takes. The long ones take as many stages on two ranks as on three.
TEST_P(EachMpi, GivesTheSameAsAPlainLoopAlone) { expectFine(1, "collectives short"); }
TEST_P(EachMpi, GivesTheSameAsAPlainLoopOnTwoRanks) { expectFine(2, "collectives short"); }
TEST_P(EachMpi, GivesTheSameAsAPlainLoopOnThreeRanks) { expectFine(3, "collectives short"); }
TEST_P(EachMpi, GivesTheSameAsAPlainLoopInManyStages) { expectFine(2, "collectives long"); }
TEST_P(EachMpi, GivesTheSameAsAPlainLoopOfAllTypes) { expectFine(2, "collectives types"); }

class SlowEachMpi : public EachMpi {};

TEST_P(SlowEachMpi, GivesTheSameAsAPlainLoopOnManyRanks) {
  // Seven ranks that share two cores need a minute for the long ones.
  for (int ranks : {4, 7}) expectFine(ranks, "collectives short");
}

TEST_P(EachMpi, ReportsAMismatchOnAllSidesAndGoesOn) {
  for (int ranks : {2, 3}) expectFine(ranks, "mismatch");
}

TEST_P(EachMpi, SlowNamesTheRankThatDoesNotCome) {
  for (int ranks : {2, 3}) expectFine(ranks, "timeout");
}

TEST_P(EachMpi, AbortEndsPendingCallsOnAllRanks) {
  expectFine(3, "abort 10");
  expectFine(3, "abort 3000000");
}

TEST_P(EachMpi, TellsWhoLeft) {
  expectFine(3, "left well");
  expectFine(3, "left dies");
}

TEST_P(EachMpi, Splits) { expectFine(4, "split"); }

// More than MPICH can have at a time.
TEST_P(EachMpi, FreesClosedCommunicators) { expectFine(2, "many 2500"); }

TEST_P(EachMpi, SendsMessages) {
  for (int ranks : {2, 3}) expectFine(ranks, "messages");
  expectFine(2, "receive-from-left");
}

TEST_P(EachMpi, JoinsPartsOfAJobByName) { expectFine(3, "join"); }

TEST_P(EachMpi, WorksOnSeveralThreads) { expectFine(3, "threads"); }

TEST_P(EachMpi, FindsNodes) {
  expectFine(3, "nodes 0 0 0");
  expectFine(3, "nodes 0 1 2", "GRADLINK_RANKS_PER_NODE=1");
  expectFine(3, "nodes 0 0 1", "GRADLINK_RANKS_PER_NODE=2");
  const Outcome bad = job(1, "nodes 0", "GRADLINK_RANKS_PER_NODE=none");
  EXPECT_EQ(lacking(bad.output,
                    {"ERR_INVALID_ARG_VALUE", "GRADLINK_RANKS_PER_NODE", "at least 1", "'none'"}),
            "")
      << bad.output;
}

TEST_P(EachMpi, SlowWaitsWithoutKeepingTheCore) { expectFine(2, "idle"); }

TEST_P(EachMpi, AbortsTheJobWithItsMessage) {
  const Outcome outcome = job(3, "abort-job");
  EXPECT_EQ(outcome.status, 3) << outcome.output;
  EXPECT_NE(outcome.output.find("good bye"), std::string::npos) << outcome.output;
}

TEST_P(EachMpi, EndsWithTheProcess) { expectFine(2, "exit"); }

TEST_P(EachMpi, WiresDeliverInOrderAndUnaltered) {
  expectFine(4, "wire-exchange");
  expectFine(3, "wire-long");
}

TEST_P(EachMpi, WiresSayGoodbye) { expectFine(3, "wire-goodbye"); }
TEST_P(EachMpi, WiresWake) { expectFine(2, "wire-wake"); }
TEST_P(EachMpi, WiresTakeSendsOfAnyThread) { expectFine(3, "wire-senders"); }

TEST_P(SlowEachMpi, MovesMoreThanTwoGiB) { expectFine(2, "large"); }

TEST_P(EachMpi, WindowsMoveKeepAndLock) {
  for (int ranks : {1, 2, 3}) expectFine(ranks, "windows");
}
TEST_P(SlowEachMpi, WindowsMoveKeepAndLockOnManyRanks) {
  for (int ranks : {4, 7}) expectFine(ranks, "windows");
}
TEST_P(EachMpi, WindowsOutliveTheirCommunicator) { expectFine(3, "windows-left"); }
TEST_P(EachMpi, WindowsDisagreeInTheSameWordsOnEveryRank) { expectFine(3, "windows-mismatch"); }
TEST_P(EachMpi, NeighborsGatherOtherLengths) {
  for (int ranks : {1, 2, 3}) expectFine(ranks, "neighbor-gather");
}
TEST_P(SlowEachMpi, NeighborsGatherOnManyRanks) {
  for (int ranks : {4, 7}) expectFine(ranks, "neighbor-gather");
}

INSTANTIATE_TEST_SUITE_P(Mpi, EachMpi, testing::Values("openmpi", "mpich", "tcp"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Mpi, SlowEachMpi, testing::Values("openmpi", "mpich", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gradlink::test
