// Windows in memory that the ranks share.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/window.h"
#include "test/threads_support.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

using Body = std::string (*)(Communicator&, const OpenWindow&);

void expectOnRanks(Body body, const std::vector<int>& sizes) {
  for (const int size : sizes) {
    expectNone(onRanks(size, [&](Communicator& comm, int /*rank*/) {
      EXPECT_EQ(body(comm, [&](const WindowSpec& spec) { return comm.openWindow(spec); }), "")
          << size << " ranks";
    }));
  }
}

TEST(ShmWindow, MovesEveryType) { expectOnRanks(windowsMoveEveryType, {1, 2, 3, 4, 7}); }
TEST(ShmWindow, KeepsTheSum) { expectOnRanks(windowsKeepTheSum, {1, 2, 3, 4, 7}); }
TEST(ShmWindow, NeedsNothingOfTheTarget) { expectOnRanks(windowsNeedNothingOfTheTarget, {2, 4}); }
TEST(ShmWindow, Locks) { expectOnRanks(windowsLock, {1, 2, 3}); }

TEST(ShmWindow, DisagreesInTheSameWordsOnEveryRank) {
  for (const bool otherCount : {true, false}) {
    const auto errors = onRanks(3, [&](Communicator& comm, int rank) {
      const auto initial = filled(8, DType::float32, 1);
      WindowSpec spec = exponential(rank, 3, 8, DType::float32, initial.data());
      if (rank == 2 && otherCount) spec.count = 7;
      if (rank == 2 && !otherCount) spec.destinations.pop_back();
      std::optional<Error> error;
      try {
        comm.openWindow(spec);
      } catch (const Error& e) {
        error = e;
      }
      // Nothing is left of it.
      comm.openWindow(exponential(rank, 3, 8, DType::float32, initial.data()))->free({});
      if (error) throw *error;
    });
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) {
      EXPECT_STREQ(error->what(), errors[0]->what());
      EXPECT_TRUE(error->usable);
    }
  }
}

TEST(ShmWindow, RefusesStrangersAndFractionsOfIntegers) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    const auto initial = filled(4, DType::int32, 1);
    WindowSpec spec;
    spec.count = 4;
    spec.dtype = DType::int32;
    spec.initial = initial.data();
    if (rank == 0) spec.destinations = {1};
    if (rank == 1) spec.sources = {0};
    const auto window = comm.openWindow(spec);
    const Deadline deadline = Deadline::in(20000);
    const auto codeOf = [](const std::function<void()>& body) -> std::optional<ErrorCode> {
      try {
        body();
      } catch (const Error& error) {
        return error.code;
      }
      return {};
    };
    auto values = filled(4, DType::int32, 2);
    const auto put = [&](int to, double weight) {
      return codeOf(
          [&] { window->put(values.data(), all({to}, weight), 1, false, false, deadline); });
    };
    EXPECT_EQ(put(rank, 1), ErrorCode::invalidArgument);
    EXPECT_EQ(put(2, 1), ErrorCode::invalidArgument);
    EXPECT_EQ(put(-1, 1), ErrorCode::invalidArgument);
    EXPECT_EQ(put(1 - rank, rank == 0 ? 0.5 : 1), ErrorCode::invalidArgument);
    comm.barrier();
    EXPECT_EQ(wrongAt(window->data(), 4, DType::int32, 1), "");
    window->free({});
    EXPECT_EQ(codeOf([&] { window->free({}); }), ErrorCode::invalidArgument);
  }));
}

TEST(ShmWindow, SaysWhenTheOtherRankHasLeft) {
  const auto errors = onRanksTaken(2, [&](std::unique_ptr<Communicator> comm, int rank) {
    const auto initial = filled(4, DType::float32, 1);
    auto window = comm->openWindow(exponential(rank, 2, 4, DType::float32, initial.data()));
    if (rank == 1) {
      window.reset();
      comm->close();
      return;
    }
    // The other's close() is what this waits for.
    try {
      comm->barrier();
    } catch (const Error&) {
    }
    auto values = filled(4, DType::float32, 1);
    window->put(values.data(), all({1}), 1, false, false, Deadline::in(20000));
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->code, ErrorCode::peerLost) << errors[0]->what();
  EXPECT_EQ(errors[0]->rank, 1);
  EXPECT_FALSE(errors[1].has_value());
}

}  // namespace
}  // namespace gradlink::test
