// What workers and servers tell each other when they meet.
#include "kvstore/worker/terms.h"

#include <gtest/gtest.h>

#include <memory>

#include "test/kvstore/support.h"
#include "test/threads_support.h"

namespace gradlink::test {
namespace {

/// What each of so many ranks threw that opened a store of two workers and so many servers.
std::vector<std::optional<Error>> meeting(int ranks, int servers) {
  return onRanksTaken(ranks, [servers](const std::unique_ptr<Communicator>& comm, int rank) {
    const DistStoreOptions options{.workers = 2, .servers = servers};
    const DistStoreOptions agreed = agreeOnTerms(*comm, rank < 2 ? &options : nullptr);
    EXPECT_EQ(agreed.workers, 2);
    EXPECT_EQ(agreed.servers, servers);
  });
}

TEST(DistTerms, OtherProcessesThanTheStoreHasAreAMismatchOnAll) {
  for (const auto& error : meeting(3, 1)) EXPECT_FALSE(error) << error->what();
  for (const int servers : {0, 1, 3}) {
    for (const auto& error : meeting(servers == 1 ? 2 : 4, servers)) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::mismatch);
    }
  }
}

}  // namespace
}  // namespace gradlink::test
