// How ranks that are processes meet, fail and leave: who is named, and what is left behind.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "test/process/support.h"

namespace gradlink::test {
namespace {

// Rank 1 dies in one of many large calls: wherever it was, the others must learn it.
TEST(ProcessesFailing, NameARankThatIsKilledInMidCall) {
  for (bool shared : {false, true}) {
    Scoreboard* board = makeScoreboard();
    auto children =
        startRanks(3, [&](Communicator& comm, [[maybe_unused]] int rank) -> std::string {
          std::vector<float> plain(shared ? 0 : 400000);
          auto* data = shared ? static_cast<float*>(comm.allocShared(1600000)) : plain.data();
          for (;;) {
            sumFloats(comm, data, 400000);
            board->ready.fetch_add(1);
          }
        });
    board->waitFor(board->ready, 6);
    children[1].kill();
    EXPECT_EQ(children[1].wait(), "killed");
    expectThrew(children[0].wait(), "ERR_PEER_LOST", 1);
    expectThrew(children[2].wait(), "ERR_PEER_LOST", 1);
  }
}

TEST(ProcessesFailing, NameARankThatIsKilledWhileTheyWaitForIt) {
  Scoreboard* board = makeScoreboard();
  auto children = startRanks(3, [&](Communicator& comm, [[maybe_unused]] int rank) -> std::string {
    board->ready.fetch_add(1);
    float x = 0;
    // Rank 2 waits for a message of rank 0, not of the one that dies.
    if (rank == 1) pause();
    if (rank == 0) comm.receive(&x, 1, DType::float32, 1, 0);
    comm.receive(&x, 1, DType::float32, 0, 0);
    return "no error";
  });
  board->waitFor(board->ready, 3);
  children[1].kill();
  EXPECT_EQ(children[1].wait(), "killed");
  expectThrew(children[0].wait(), "ERR_PEER_LOST", 1);
  expectThrew(children[2].wait(), "ERR_PEER_LOST", 1);
}

TEST(ProcessesFailing, EndWithTheReasonOfAnAbort) {
  const auto results = onRanks(3, [](Communicator& comm, int rank) -> std::string {
    if (rank == 1) comm.abort("enough");
    for (;;) comm.barrier();
  });
  for (auto& result : results) {
    expectThrew(result, "ERR_ABORTED", 1);
    EXPECT_NE(result.find("enough"), std::string::npos);
  }
}

TEST(ProcessesRendezvous, NamesAllMissingRanksToEverybodyWhoCame) {
  const std::string name = freshName();
  auto late = [&](int rank, double timeoutMs) {
    return Child([&, rank, timeoutMs]() -> std::string {
      auto options = optionsFor(name, rank, 5);
      options.timeoutMs = timeoutMs;
      shm::join(options);
      return "no error";
    });
  };
  Child a = late(0, 20000);
  Child b = late(4, 20000);
  waitUntil([&] { return socketsOf(name) >= 2; });
  Child c = late(2, 300);  // the first to give up tells the others
  for (Child* child : {&a, &b, &c}) {
    const std::string result = child->wait();
    EXPECT_EQ(result.rfind("threw ERR_TIMEOUT rank 1:", 0), 0u) << result;
    EXPECT_NE(result.find(": 1, 3."), std::string::npos) << result;
  }
}

TEST(ProcessesRendezvous, RefusesDifferentSizesAndARankTakenTwice) {
  for (bool sizes : {true, false}) {
    const std::string name = freshName();
    auto join = [&](int rank, int size) {
      return Child([&, rank, size]() -> std::string {
        shm::join(optionsFor(name, rank, size));
        return "no error";
      });
    };
    Child a = join(0, 3);
    Child b = sizes ? join(1, 4) : join(0, 3);
    for (Child* child : {&a, &b}) EXPECT_EQ(child->wait().rfind("threw ERR_MISMATCH", 0), 0u);
  }
}

TEST(ProcessesRendezvous, GoesOnWhenItsLeaderIsKilledAndComesBack) {
  const std::string name = freshName();
  auto join = [&](int rank) {
    return Child([&, rank]() -> std::string {
      auto comm = shm::join(optionsFor(name, rank, 3));
      return runRank(*comm, {Op::allReduce, 3, 50000});
    });
  };
  Child first = join(0);
  // It leads once its name is bound.
  waitUntil([&] { return socketsOf(name) > 0; });
  Child second = join(1);
  first.kill();
  EXPECT_EQ(first.wait(), "killed");
  Child again = join(0);
  Child third = join(2);
  for (Child* child : {&second, &again, &third}) EXPECT_EQ(child->wait(), "");
  EXPECT_EQ(socketsOf(name), 0);
}

TEST(ProcessesRendezvous, OtherJobsWithTheSameNameDoNotMeet) {
  const std::string name = freshName();
  expectFine(startEach(4, [&](int i) -> std::string {
    auto options = optionsFor(name, i % 2, 2);
    options.job = i < 2 ? "one" : "two";
    auto comm = shm::join(options);
    int value = i;
    int got = -1;
    comm->send(&value, 1, DType::int32, 1 - i % 2, 0);
    comm->receive(&got, 1, DType::int32, 1 - i % 2, 0);
    return got / 2 == i / 2 ? "" : "met the other job";
  }));
}

TEST(ProcessesRendezvous, ANameIsFreeAgainOnceAllHaveJoined) {
  const std::string name = freshName();
  expectFine(startEach(3, [&](int r) -> std::string {
    for (int generation = 0; generation < 20; ++generation) {
      auto comm = shm::join(optionsFor(name, r, 3));
      if (auto wrong = runRank(*comm, {Op::allReduce, 3, 5}); !wrong.empty()) return wrong;
    }
    return {};
  }));
}

std::ptrdiff_t openFiles() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// But for the rings that are kept for the next communicators, which are few.
TEST(ProcessesLeave, NoDescriptorsAndNoMappings) {
  constexpr std::ptrdiff_t kMostKept = 4;
  constexpr int kTimes = 12;
  const std::string name = freshName();
  expectFine(startEach(2, [&](int r) -> std::string {
    const std::ptrdiff_t before = openFiles();
    for (int i = 0; i < kTimes; ++i) {
      auto comm = shm::join(optionsFor(name + "/" + std::to_string(i), r, 2));
      auto* memory = static_cast<float*>(comm->allocShared(1 << 20));
      sumFloats(*comm, memory, 1 << 18);
    }
    if (openFiles() > before + kMostKept) return "descriptors are left";
    return linesWith("/proc/self/maps", "memfd:gradlink").empty() ? "" : "mappings are left";
  }));
}

/// Of the segments of this process: how many bytes they take, and whether one can be cut short.
std::pair<std::size_t, bool> segments() {
  std::pair<std::size_t, bool> all{0, false};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat state {};
    if (file.find("memfd:gradlink") == std::string::npos) continue;
    if (stat(entry.path().c_str(), &state) != 0) continue;
    all.first += static_cast<std::size_t>(state.st_blocks) * 512;
    all.second = truncate(entry.path().c_str(), 0) == 0 || all.second;
  }
  return all;
}

TEST(ProcessesLeave, WhatIsFreedGivesItsMemoryBack) {
  expectNone(onRanks(2, [](Communicator& comm, int) -> std::string {
    const auto mappings = [] { return linesWith("/proc/self/maps", "memfd:gradlink").size(); };
    const std::size_t before = mappings();
    for (int i = 0; i < 30; ++i) {
      auto* memory = static_cast<float*>(comm.allocShared(8 << 20));
      sumFloats(comm, memory, 2 << 20);
      comm.freeShared(memory);
    }
    comm.barrier();
    // One generation of the peer's may still be mapped, not thirty.
    if (mappings() > before + 4) return std::to_string(mappings()) + " mappings are left";
    const auto [bytes, cut] = segments();
    if (cut) return "a segment can be cut short";
    return bytes < 64 << 20 ? "" : std::to_string(bytes) + " bytes are still taken";
  }));
}

}  // namespace
}  // namespace gradlink::test
