// Windows whose ranks reach each other by messages only: between hosts.
#include "core/window.h"
#include "test/hosts/support.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

TEST(HostsWindows, MoveKeepAndLock) {
  for (const Layout& layout :
       {Layout{0, 1}, Layout{0, 0, 1}, Layout{0, 1, 0, 1}, Layout{0, 1, 2, 0, 1, 2, 0}}) {
    expectNone(onHosts(layout, [&](Communicator& comm, int /*rank*/) {
      const OpenWindow open = [&](const WindowSpec& spec) { return comm.openWindow(spec); };
      EXPECT_EQ(windowsWork(comm, onTheHost(open)), "") << layout.size() << " ranks";
    }));
  }
}

TEST(HostsWindows, DisagreeInTheSameWordsOnEveryRank) {
  for (const bool otherCount : {true, false}) {
    const auto errors = onHosts(
        {0, 0, 1}, [&](Communicator& comm, int /*rank*/) { openWhatDiffers(comm, otherCount); });
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) EXPECT_STREQ(error->what(), errors[0]->what());
  }
}

TEST(HostsWindows, NameWhoHasLeft) {
  const auto errors = onHosts({0, 0, 1}, [&](Communicator& comm, int rank) {
    const auto initial = filled(3, DType::float32, 1);
    const auto window = comm.openWindow(exponential(rank, 3, 3, DType::float32, initial.data()));
    comm.barrier();
    if (rank == 2) {
      comm.close();
      EXPECT_THROW(window->put(window->data(), all({0}), 1, false, false, Deadline::in(20000)),
                   Error);
      // The array stays.
      EXPECT_EQ(wrongAt(window->data(), 3, DType::float32, 1), "");
      return;
    }
    const Deadline deadline = Deadline::in(20000);
    while (!deadline.passed()) window->put(window->data(), all({2}), 1, false, false, deadline);
  });
  EXPECT_FALSE(errors[2].has_value());
  expectAll({errors[0], errors[1]}, ErrorCode::peerLost, 2);
}

TEST(HostsWindows, RefuseMisuse) {
  expectNone(onHosts({0, 1}, [&](Communicator& comm, int rank) {
    const auto initial = filled(2, DType::int32, 1);
    const WindowSpec spec = exponential(rank, 2, 2, DType::int32, initial.data());
    const auto window = comm.openWindow(spec);
    const Deadline deadline = Deadline::in(20000);
    const auto refused = [](const auto& call) {
      return codeOf(call) == ErrorCode::invalidArgument;
    };
    EXPECT_TRUE(
        refused([&] { window->put(window->data(), all({rank}), 1, false, false, deadline); }));
    EXPECT_TRUE(refused(
        [&] { window->put(window->data(), all({1 - rank}, 0.5), 1, false, false, deadline); }));
    EXPECT_TRUE(refused([&] { window->get(all({1 - rank}, 0.5), false, deadline); }));
    EXPECT_TRUE(refused([&] { window->update(nullptr, 0.5, {}, 1, false, false, deadline); }));
    EXPECT_TRUE(refused([&] { window->tryLock(2, rank); }));
    window->free({});
    EXPECT_TRUE(refused([&] { window->put(window->data(), {}, 1, false, false, deadline); }));
  }));
}

}  // namespace
}  // namespace gradlink::test
