// Windows in memory that the ranks share.
#include "core/window.h"
#include "test/threads_support.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

TEST(ShmWindow, MovesKeepsAndLocks) {
  for (const int size : {1, 2, 3, 4, 7}) {
    expectNone(onRanks(size, [&](Communicator& comm, int /*rank*/) {
      const OpenWindow open = [&](const WindowSpec& spec) { return comm.openWindow(spec); };
      EXPECT_EQ(windowsWork(comm, onTheHost(open)), "") << size << " ranks";
    }));
  }
}

TEST(ShmWindow, DisagreesInTheSameWordsOnEveryRank) {
  for (const bool otherCount : {true, false}) {
    const auto errors =
        onRanks(3, [&](Communicator& comm, int /*rank*/) { openWhatDiffers(comm, otherCount); });
    expectAll(errors, ErrorCode::mismatch);
    for (const auto& error : errors) EXPECT_STREQ(error->what(), errors[0]->what());
  }
}

TEST(ShmWindow, RefusesStrangersAndFractionsOfIntegers) {
  expectNone(onRanks(2, [&](Communicator& comm, int rank) {
    const auto initial = filled(4, DType::int32, 1);
    WindowSpec spec{.count = 4, .dtype = DType::int32, .initial = initial.data()};
    if (rank == 0) spec.destinations = {1};
    if (rank == 1) spec.sources = {0};
    const auto window = comm.openWindow(spec);
    const Deadline deadline = Deadline::in(20000);
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
    errorOf([&] { comm->barrier(); });
    auto values = filled(4, DType::float32, 1);
    window->put(values.data(), all({1}), 1, false, false, Deadline::in(20000));
  });
  expectAll({errors[0]}, ErrorCode::peerLost, 1);
  EXPECT_FALSE(errors[1].has_value());
}

}  // namespace
}  // namespace gradlink::test
