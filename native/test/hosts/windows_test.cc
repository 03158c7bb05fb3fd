// Windows whose ranks reach each other by messages only: between hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "core/window.h"
#include "core/windows/wire_windows.h"
#include "test/hosts/support.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

using Body = std::string (*)(Communicator&, const OpenWindow&);

/// On ranks of which each has a window service over the engine's wires.
void expectOnRanks(Body body, const std::vector<int>& sizes) {
  for (const int size : sizes) {
    expectNone(onRanks(size, [&](Communicator& comm, int /*rank*/) {
      WireWindows windows;
      EXPECT_EQ(body(comm, [&](const WindowSpec& spec) { return windows.open(comm, spec, {}); }),
                "")
          << size << " ranks";
      windows.close();
    }));
  }
}

TEST(HostsWindows, MoveEveryType) { expectOnRanks(windowsMoveEveryType, {1, 2, 3, 4, 7}); }
TEST(HostsWindows, KeepTheSum) { expectOnRanks(windowsKeepTheSum, {1, 2, 4, 7}); }
TEST(HostsWindows, NeedNothingOfTheTarget) { expectOnRanks(windowsNeedNothingOfTheTarget, {2, 4}); }
TEST(HostsWindows, Lock) { expectOnRanks(windowsLock, {1, 2, 3}); }

TEST(HostsWindows, OfAHierarchy) {
  for (const Layout& layout : {Layout{0, 0, 1}, Layout{0, 1, 0, 1}, Layout{0, 1, 2, 0, 1, 2, 0}}) {
    expectNone(onHosts(layout, [&](Communicator& comm, int /*rank*/) {
      const OpenWindow open = [&](const WindowSpec& spec) { return comm.openWindow(spec); };
      EXPECT_EQ(windowsMoveEveryType(comm, open), "");
      EXPECT_EQ(windowsKeepTheSum(comm, open), "");
      EXPECT_EQ(windowsNeedNothingOfTheTarget(comm, open), "");
      EXPECT_EQ(windowsLock(comm, open), "");
    }));
  }
}

TEST(HostsWindows, DisagreeInTheSameWordsOnEveryRank) {
  for (const bool otherCount : {true, false}) {
    const auto errors = onHosts({0, 0, 1}, [&](Communicator& comm, int rank) {
      const auto initial = filled(8, DType::float32, 1);
      WindowSpec spec = exponential(rank, 3, 8, DType::float32, initial.data());
      if (rank == 2 && otherCount) spec.count = 7;
      if (rank == 2 && !otherCount) spec.destinations.pop_back();
      try {
        comm.openWindow(spec);
      } catch (const Error&) {
        // The next one has the same number everywhere.
        const auto window =
            comm.openWindow(exponential(rank, 3, 8, DType::float32, initial.data()));
        EXPECT_EQ(window->p(), 1);
        window->free({});
        throw;
      }
    });
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) {
      EXPECT_STREQ(error->what(), errors[0]->what());
      EXPECT_TRUE(error->usable);
    }
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
  for (const int rank : {0, 1}) {
    const auto& error = errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, ErrorCode::peerLost) << error->what();
    EXPECT_EQ(error->rank, 2);
  }
}

TEST(HostsWindows, RefuseMisuse) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    WireWindows windows;
    const auto initial = filled(2, DType::int32, 1);
    const WindowSpec spec = exponential(rank, 2, 2, DType::int32, initial.data());
    const auto window = windows.open(comm, spec, {});
    const Deadline deadline = Deadline::in(20000);
    const auto refused = [&](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::invalidArgument) << error.what();
        EXPECT_TRUE(error.usable);
        return true;
      }
      return false;
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
    windows.close();
  }));
}

}  // namespace
}  // namespace gradlink::test
