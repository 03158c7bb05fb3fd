#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>

#include "core/error.h"
#include "shm/shm.h"
#include "shm_support.h"

namespace gradlink::test {
namespace {

std::string freshName() {
  static std::atomic<int> next{0};
  return "threads-" + std::to_string(next++);
}

shm::JoinOptions optionsFor(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "test";
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.threads = true;
  options.timeoutMs = 20000;
  return options;
}

/// Runs body(rank) on a thread each and returns what each threw, if anything.
std::vector<std::optional<Error>> onThreads(int size, const std::function<void(int)>& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(r)] = error;
      }
    });
  }
  for (auto& t : threads) t.join();
  return errors;
}

/// The same with a communicator.
std::vector<std::optional<Error>> onRanks(int size,
                                          const std::function<void(Communicator&, int)>& body) {
  const std::string name = freshName();
  return onThreads(size, [&](int rank) {
    auto comm = shm::join(optionsFor(name, rank, size));
    body(*comm, rank);
  });
}

void expectNone(const std::vector<std::optional<Error>>& errors) {
  for (auto& error : errors) EXPECT_FALSE(error.has_value()) << error->what();
}

void expectAll(const std::vector<std::optional<Error>>& errors, ErrorCode code, int rank = -2) {
  for (auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, code) << error->what();
    if (rank != -2) {
      EXPECT_EQ(error->rank, rank) << error->what();
    }
  }
}

class Threads : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(Threads, GiveTheSameAsAPlainLoop) {
  const auto [op, size] = GetParam();
  std::vector<Case> cases = everyLength(op, size, {0, 1, 7, 100, 4099, 40001});
  for (const Case& c : everyType(op, size, 45)) cases.push_back(c);
  expectNone(onRanks(size, [&](Communicator& comm, int) {
    for (const Case& c : cases) EXPECT_EQ(runRank(comm, c), "");
  }));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Threads,
                         testing::Combine(testing::ValuesIn(kAllOps),
                                          testing::Values(1, 2, 3, 4, 7)),
                         [](const auto& info) {
                           return std::string(nameOf(std::get<0>(info.param))) +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(ThreadsTogether, MixSmallAndLargeCallsInAnyOrder) {
  expectNone(onRanks(4, [](Communicator& comm, int) {
    for (std::size_t i = 0; i < 200; ++i) {
      const Op op = kAllOps[i % std::size(kAllOps)];
      EXPECT_EQ(runRank(comm, {op, 4, (i * 37) % 3000, DType::float32}), "");
      if (i % 3 == 0) comm.barrier();
    }
  }));
}

// A small call's payload and a large call's pointers share a place; a rank may run one call ahead
// of another.
TEST(ThreadsTogether, BarriersOrderWhatCameBefore) {
  std::atomic<int> before{0};
  expectNone(onRanks(4, [&](Communicator& comm, int) {
    for (int round = 1; round <= 100; ++round) {
      before.fetch_add(1);
      comm.barrier();
      EXPECT_GE(before.load(), 4 * round);
      comm.barrier();
    }
  }));
}

TEST(ThreadsTogether, ReportAMismatchOnAllSidesAndGoOn) {
  const auto errors = onRanks(3, [](Communicator& comm, int rank) {
    std::vector<float> data(20, 1);
    const void* in[] = {data.data()};
    void* out[] = {data.data()};
    std::optional<Error> error;
    try {
      comm.allReduce({in, out}, rank == 1 ? 12u : 10u, DType::float32, ReduceOp::sum);
    } catch (const Error& e) {
      error = e;
    }
    // All of them have met for it, so the next call is in step again.
    comm.allReduce({in, out}, 20, DType::float32, ReduceOp::sum);
    EXPECT_EQ(data[0], 3);
    if (error) throw *error;
  });
  expectAll(errors, ErrorCode::mismatch, 1);
  for (auto& error : errors) {
    EXPECT_TRUE(error->usable);
    EXPECT_NE(std::string(error->what()).find("rank 1 called allReduce(count 12, float32, sum)"),
              std::string::npos)
        << error->what();
    EXPECT_NE(
        std::string(error->what()).find("ranks 0, 2 called allReduce(count 10, float32, sum)"),
        std::string::npos);
  }
}

TEST(ThreadsTogether, TellTypesOpsRootsAndKindsApart) {
  auto differ = [](const std::function<void(Communicator&, int, const Buffers&)>& body) {
    const auto errors = onRanks(2, [&](Communicator& comm, int rank) {
      std::vector<double> data(100000, 1), result(100000);
      const void* in[] = {data.data()};
      void* out[] = {result.data()};
      body(comm, rank, {in, out});
    });
    expectAll(errors, ErrorCode::mismatch);
  };
  differ([](auto& comm, int rank, auto& b) {
    comm.allReduce(b, 10, rank == 0 ? DType::float32 : DType::int32, ReduceOp::sum);
  });
  differ([](auto& comm, int rank, auto& b) {
    comm.allReduce(b, 90000, DType::float32, rank == 0 ? ReduceOp::sum : ReduceOp::max);
  });
  differ([](auto& comm, int rank, auto& b) { comm.broadcast(b, 90000, DType::float32, rank); });
  differ([](auto& comm, int rank, auto& b) {
    if (rank == 0) comm.barrier();
    if (rank == 1) comm.allReduce(b, 90000, DType::float32, ReduceOp::sum);
  });
}

TEST(ThreadsFailing, NameTheRankThatNeverCalls) {
  std::latch done(2);
  const auto errors = onRanks(3, [&](Communicator& comm, int rank) {
    if (rank == 2) {
      done.wait();
      comm.barrier();  // too late: the others have given up, and it hears so
      return;
    }
    try {
      comm.barrier({.timeoutMs = 60});
    } catch (...) {
      done.count_down();
      throw;
    }
  });
  expectAll(errors, ErrorCode::timeout, 2);
}

TEST(ThreadsFailing, NameTheRankThatClosed) {
  const auto errors = onRanks(3, [](Communicator& comm, int rank) {
    comm.barrier();
    if (rank == 1) return comm.close();
    comm.barrier();
  });
  EXPECT_FALSE(errors[1].has_value());
  expectAll({errors[0], errors[2]}, ErrorCode::peerLost, 1);
}

TEST(ThreadsFailing, HearAboutARankThatLeavesInMidCall) {
  std::latch joined(3);
  const std::string name = freshName();
  const auto errors = onThreads(3, [&](int rank) {
    auto comm = shm::join(optionsFor(name, rank, 3));
    joined.arrive_and_wait();
    if (rank == 1) {
      std::thread ender([&] { comm->leave(); });
      struct Joiner {
        std::thread& t;
        ~Joiner() { t.join(); }
      } joiner{ender};
      float x = 0;
      comm->receive(&x, 1, DType::float32, 0, 5);
      return;
    }
    comm->barrier();
  });
  expectAll({errors[0], errors[2]}, ErrorCode::peerLost, 1);
  expectAll({errors[1]}, ErrorCode::closed);
}

TEST(ThreadsFailing, EndWithTheReasonOfAnAbort) {
  const auto errors = onRanks(3, [](Communicator& comm, int rank) {
    if (rank == 0) comm.abort("out of milk");
    comm.barrier();
    comm.barrier();
  });
  for (auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, ErrorCode::aborted);
    EXPECT_NE(std::string(error->what()).find("by rank 0: out of milk"), std::string::npos);
  }
}

// Who returns with an error may free its buffers at once; AddressSanitizer and ThreadSanitizer see
// a peer that reads on.
TEST(ThreadsFailing, NobodyTouchesBuffersOfARankThatGaveUp) {
  for (int round = 0; round < 20; ++round) {
    onRanks(4, [&](Communicator& comm, int rank) {
      std::vector<float> data(300000, 1);
      const void* in[] = {data.data()};
      void* out[] = {data.data()};
      std::thread aborter;
      if (rank == round % 4) aborter = std::thread([&] { comm.abort("now"); });
      struct Joiner {
        std::thread& t;
        ~Joiner() {
          if (t.joinable()) t.join();
        }
      } joiner{aborter};
      for (int i = 0; i < 5; ++i)
        comm.allReduce({in, out}, data.size(), DType::float32, ReduceOp::max);
    });
  }
}

TEST(ThreadsMeeting, NamesAllMissingRanksToEverybodyWhoCame) {
  const std::string name = freshName();
  const auto errors = onThreads(2, [&](int i) {
    auto options = optionsFor(name, i == 0 ? 0 : 3, 5);
    options.timeoutMs = 50;
    shm::join(options);
  });
  expectAll(errors, ErrorCode::timeout);
  // Who came later may have met alone, after the first gave up: the first one's list is the one
  // that is sure.
  EXPECT_NE(std::string(errors[0]->what()).find("1, 2"), std::string::npos) << errors[0]->what();
}

TEST(ThreadsMeeting, RefusesDifferentSizesAndARankTakenTwice) {
  for (bool sizes : {true, false}) {
    const std::string name = freshName();
    expectAll(
        onThreads(2, [&](int i) { shm::join(optionsFor(name, sizes ? i : 0, sizes ? 3 + i : 3)); }),
        ErrorCode::mismatch);
  }
}

TEST(ThreadsMeeting, CanBeCancelled) {
  std::atomic<bool> cancelled{true};
  auto options = optionsFor(freshName(), 0, 2);
  options.cancelled = &cancelled;
  try {
    shm::join(options);
    FAIL() << "join did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::closed);
  }
}

TEST(ThreadsMeeting, ANameIsFreeAgainOnceAllHaveJoined) {
  const std::string name = freshName();
  expectNone(onThreads(3, [&](int rank) {
    for (int generation = 0; generation < 20; ++generation) {
      auto comm = shm::join(optionsFor(name, rank, 3));
      EXPECT_EQ(runRank(*comm, {Op::allReduce, 3, 5}), "");
    }
  }));
}

TEST(ThreadsSplit, OrdersByKeyAndLeavesNegativeColorsOut) {
  expectNone(onRanks(5, [](Communicator& comm, int rank) {
    auto part = comm.split(rank == 4 ? -1 : rank % 2, -rank);
    if (rank == 4) {
      EXPECT_EQ(part, nullptr);
    } else {
      EXPECT_EQ(part->size(), 2);
      EXPECT_EQ(part->heldRanks()[0], rank < 2 ? 1 : 0);
      EXPECT_EQ(runRank(*part, {Op::allGather, 2, 100}), "");
      auto again = part->split(0, 0);
      EXPECT_EQ(runRank(*again, {Op::allReduce, 2, 10000}), "");
    }
    comm.barrier();
  }));
}

TEST(ThreadsShared, AllocSharedIsZeroedAndWorksInCalls) {
  expectNone(onRanks(2, [](Communicator& comm, int) {
    auto* memory = static_cast<float*>(comm.allocShared(40000));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(memory[9999], 0);
    std::fill(memory, memory + 10000, 2.0f);
    const void* in[] = {memory};
    void* out[] = {memory};
    comm.allReduce({in, out}, 10000, DType::float32, ReduceOp::sum);
    EXPECT_EQ(memory[9999], 4);
    comm.freeShared(memory);
  }));
}

// ---- messages

TEST(ThreadsMessages, KeepTheirOrderForASourceAndTag) {
  expectNone(onRanks(2, [](Communicator& comm, int rank) {
    for (int i = 0; i < 500; ++i) {
      // Short and long ones by turns.
      std::vector<int> data(i % 5 == 0 ? 30000 : static_cast<std::size_t>(i % 50), i);
      if (rank == 0) comm.send(data.data(), data.size(), DType::int32, 1, 7);
      if (rank == 1) {
        std::vector<int> got(30000, -1);
        const Received received = comm.receive(got.data(), got.size(), DType::int32, 0, 7);
        ASSERT_EQ(received.count, data.size());
        ASSERT_TRUE(std::equal(data.begin(), data.end(), got.begin()));
      }
    }
  }));
}

TEST(ThreadsMessages, AreFoundByTagAndFromAnySource) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) {
    if (rank > 0) {
      for (int tag : {1, 2}) {
        const int value = rank * 10 + tag;
        comm.send(&value, 1, DType::int32, 0, tag);
      }
      return comm.barrier();
    }
    int seen = 0;
    for (int i = 0; i < 3; ++i) {
      int value = 0;
      const Received received = comm.receive(&value, 1, DType::int32, kAnySource, 2);
      EXPECT_EQ(value, received.source * 10 + 2);
      seen |= 1 << received.source;
    }
    EXPECT_EQ(seen, 0b1110);
    for (int source : {3, 1, 2}) {
      int value = 0;
      comm.receive(&value, 1, DType::int32, source, 1);
      EXPECT_EQ(value, source * 10 + 1);
    }
    comm.barrier();
  }));
}

TEST(ThreadsMessages, ConcurrentSmallSendsDoNotDeadlock) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> mine(2000, static_cast<float>(rank)), theirs(2000);
      for (int peer = 0; peer < 4; ++peer)
        comm.send(mine.data(), mine.size(), DType::float32, peer, round);
      for (int peer = 0; peer < 4; ++peer) {
        comm.receive(theirs.data(), theirs.size(), DType::float32, peer, round);
        EXPECT_EQ(theirs[1999], static_cast<float>(peer));
      }
    }
  }));
}

TEST(ThreadsMessages, TooLongIsAMismatchOnBothSides) {
  for (std::size_t length : {100u, 100000u}) {
    const auto errors = onRanks(2, [&](Communicator& comm, int rank) {
      std::vector<float> data(length);
      if (rank == 0) {
        comm.send(data.data(), length, DType::float32, 1, 0);
        comm.barrier();  // a short send has returned by now: its next call tells
      } else {
        comm.receive(data.data(), length / 2, DType::float32, 0, 0);
      }
    });
    expectAll(errors, ErrorCode::mismatch);
  }
}

TEST(ThreadsMessages, AReceiveThatTimesOutLeavesTheCommunicatorUsable) {
  expectNone(onRanks(2, [](Communicator& comm, int rank) {
    float x = 0;
    try {
      comm.receive(&x, 1, DType::float32, 1 - rank, 3, {.timeoutMs = 20});
      ADD_FAILURE() << "receive did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::timeout);
      EXPECT_TRUE(error.usable);
    }
    EXPECT_EQ(runRank(comm, {Op::allReduce, 2, 5000}), "");
  }));
}

TEST(ThreadsMessages, AReceiveFromARankThatLeftFailsAfterItsLastMessage) {
  const auto errors = onRanks(2, [](Communicator& comm, int rank) {
    int value = 42;
    if (rank == 0) {
      comm.send(&value, 1, DType::int32, 1, 0);
      return comm.close();
    }
    int got = 0;
    comm.receive(&got, 1, DType::int32, 0, 0);
    EXPECT_EQ(got, 42);
    comm.receive(&got, 1, DType::int32, 0, 0);
  });
  EXPECT_FALSE(errors[0].has_value());
  expectAll({errors[1]}, ErrorCode::peerLost, 0);
}

}  // namespace
}  // namespace gradlink::test
