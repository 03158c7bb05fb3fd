// Windows and neighbours over MPI, under real launchers of Open MPI and of MPICH.
#include <gtest/gtest.h>

#include "test/messages/jobs.h"

namespace gradlink::test {
namespace {

class MpiWindows : public EachMpi {};
class SlowMpiWindows : public EachMpi {};

TEST_P(MpiWindows, MoveKeepAndLock) {
  for (int ranks : {1, 2, 3}) expectFine(ranks, "windows");
}
TEST_P(SlowMpiWindows, MoveKeepAndLockOnManyRanks) {
  for (int ranks : {4, 7}) expectFine(ranks, "windows");
}
TEST_P(MpiWindows, OutliveTheirCommunicator) { expectFine(3, "windows-left"); }
TEST_P(MpiWindows, DisagreeInTheSameWordsOnEveryRank) { expectFine(3, "windows-mismatch"); }
TEST_P(MpiWindows, NeighborsGatherOtherLengths) {
  for (int ranks : {1, 2, 3}) expectFine(ranks, "neighbor-gather");
}
TEST_P(SlowMpiWindows, NeighborsGatherOnManyRanks) {
  for (int ranks : {4, 7}) expectFine(ranks, "neighbor-gather");
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiWindows, testing::Values("openmpi", "mpich", "tcp"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Mpi, SlowMpiWindows, testing::Values("openmpi", "mpich", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gradlink::test
