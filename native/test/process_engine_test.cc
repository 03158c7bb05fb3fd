// Ranks as processes: each test forks them, and a child reports what went wrong through its exit
// status and a pipe.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "shm/shm.h"
#include "shm_support.h"

namespace gradlink::test {
namespace {

std::string freshName() {
  static int next = 0;
  return "processes-" + std::to_string(getpid()) + "-" + std::to_string(next++);
}

shm::JoinOptions optionsFor(const std::string& name, int rank, int size) {
  shm::JoinOptions options;
  options.job = "test";
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.timeoutMs = 20000;
  return options;
}

/// Counters that parent and children share: conditions to wait for instead of times.
struct Scoreboard {
  std::atomic<int> ready{0};
  std::atomic<int> go{0};
  void waitFor(std::atomic<int>& counter, int value) const {
    while (counter.load() < value) usleep(200);
  }
};
Scoreboard* makeScoreboard() {
  void* memory =
      mmap(nullptr, sizeof(Scoreboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Scoreboard;
}

/// A forked rank. body returns "" or what is wrong.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      std::string text;
      try {
        text = body();
      } catch (const Error& error) {
        text = std::string("threw ") + gradlink::nameOf(error.code) + " rank " +
               std::to_string(error.rank) + ": " + error.what();
      }
      if (write(ends[1], text.data(), text.size()) < 0) _exit(3);
      // Not exit(): the parent's test framework would run its end twice.
      _exit(text.empty() ? 0 : 1);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  void kill() { ::kill(pid_, SIGKILL); }
  /// What the child had to say; "killed" when a signal ended it.
  std::string wait() {
    std::string text;
    char buffer[512];
    ssize_t got;
    while ((got = read(pipe_, buffer, sizeof(buffer))) > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    close(pipe_);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL ? "killed" : "died of a signal";
    if (WEXITSTATUS(status) != 0 && text.empty())
      return "exit status " + std::to_string(WEXITSTATUS(status));
    return text;
  }

 private:
  pid_t pid_;
  int pipe_;
};

std::vector<std::string> onRanks(int size,
                                 const std::function<std::string(Communicator&, int)>& body,
                                 std::size_t slotBytes = 0) {
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < size; ++r) {
    children.emplace_back([&, r] {
      auto options = optionsFor(name, r, size);
      options.slotBytes = slotBytes;
      auto comm = shm::join(options);
      return body(*comm, r);
    });
  }
  std::vector<std::string> results;
  for (Child& child : children) results.push_back(child.wait());
  return results;
}

void expectNone(const std::vector<std::string>& results) {
  for (auto& result : results) EXPECT_EQ(result, "");
}

void expectThrew(const std::string& result, const std::string& code, int rank) {
  EXPECT_EQ(result.rfind("threw " + code + " rank " + std::to_string(rank) + ":", 0), 0u) << result;
}

std::string runAll(Communicator& comm, const std::vector<Case>& cases,
                   const RankBuffers::Allocate& allocate = nullptr) {
  for (const Case& c : cases) {
    if (std::string wrong = runRank(comm, c, allocate); !wrong.empty()) return wrong;
  }
  return {};
}

class Processes : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(Processes, GiveTheSameAsAPlainLoop) {
  const auto [op, size] = GetParam();
  std::vector<Case> cases = everyLength(op, size, {0, 1, 9, 100, 4099, 40001, 150001});
  for (const Case& c : everyType(op, size, 45)) cases.push_back(c);
  for (const Case& c : everyType(op, size, 20011)) cases.push_back(c);
  expectNone(onRanks(size, [&](Communicator& comm, int) { return runAll(comm, cases); }));
}

TEST_P(Processes, PassThroughManyTinySlots) {
  const auto [op, size] = GetParam();
  const std::vector<Case> cases = everyLength(op, size, {16385, 33333});
  expectNone(onRanks(
      size, [&](Communicator& comm, int) { return runAll(comm, cases); }, 1024));
}

TEST_P(Processes, WorkOnSharedArraysInPlace) {
  const auto [op, size] = GetParam();
  const std::vector<Case> cases = everyLength(op, size, {1, 40001, 150001});
  expectNone(onRanks(size, [&](Communicator& comm, int) -> std::string {
    for (const Case& c : cases) {
      std::vector<void*> memory;
      const auto wrong = runRank(comm, c, [&](std::size_t bytes) {
        memory.push_back(comm.allocShared(bytes));
        return static_cast<std::byte*>(memory.back());
      });
      if (!wrong.empty()) return wrong;
      for (void* m : memory) comm.freeShared(m);
    }
    return {};
  }));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Processes,
                         testing::Combine(testing::ValuesIn(kAllOps),
                                          testing::Values(1, 2, 3, 4, 7)),
                         [](const auto& info) {
                           return std::string(nameOf(std::get<0>(info.param))) +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(ProcessesTogether, MixSmallLargeSharedAndPlainCalls) {
  expectNone(onRanks(
      3,
      [](Communicator& comm, int) -> std::string {
        auto* shared = static_cast<std::byte*>(comm.allocShared(4 << 20));
        for (std::size_t i = 0; i < 150; ++i) {
          const Op op = kAllOps[i % std::size(kAllOps)];
          const Case c{op, 3, (i * 977) % 20000, DType::float32};
          std::size_t used = 0;
          auto take = [&](std::size_t bytes) {
            std::byte* at = shared + used;
            used += (bytes + 63) / 64 * 64;
            return at;
          };
          const auto wrong = i % 2 == 0 ? runRank(comm, c) : runRank(comm, c, take);
          if (!wrong.empty()) return wrong;
          if (i % 5 == 0) comm.barrier();
        }
        return {};
      },
      4096));
}

TEST(ProcessesTogether, MessagesKeepOrderShortAndLong) {
  expectNone(onRanks(3, [](Communicator& comm, int rank) -> std::string {
    for (int i = 0; i < 200; ++i) {
      std::vector<int> data(i % 5 == 0 ? 30000 : static_cast<std::size_t>(i % 50), i);
      if (rank < 2) {
        comm.send(data.data(), data.size(), DType::int32, 2, rank);
        continue;
      }
      for (int source : {1, 0}) {
        std::vector<int> got(30000, -1);
        const Received received =
            comm.receive(got.data(), got.size(), DType::int32, source, source);
        if (received.count != data.size() || !std::equal(data.begin(), data.end(), got.begin())) {
          return "message " + std::to_string(i) + " is wrong";
        }
      }
    }
    return {};
  }));
}

TEST(ProcessesTogether, Split) {
  expectNone(onRanks(4, [](Communicator& comm, int rank) -> std::string {
    auto part = comm.split(rank % 2, -rank);
    return runRank(*part, {Op::allGather, 2, 30000});
  }));
}

TEST(ProcessesTogether, ReportAMismatchOnAllSidesAndGoOn) {
  expectNone(onRanks(3, [](Communicator& comm, int rank) -> std::string {
    for (std::size_t count : {10u, 50000u}) {
      std::vector<float> data(count + 1, 1), result(count + 1);
      const void* in[] = {data.data()};
      void* out[] = {result.data()};
      try {
        comm.allReduce({in, out}, rank == 2 ? count + 1 : count, DType::float32, ReduceOp::sum);
        return "no error";
      } catch (const Error& error) {
        if (error.code != ErrorCode::mismatch || error.rank != 2 || !error.usable)
          return error.what();
      }
      comm.allReduce({in, out}, count, DType::float32, ReduceOp::sum);
      if (result[0] != 3) return "wrong sum after the mismatch";
    }
    return {};
  }));
}

// ---- failing

// Rank 1 dies in one of many large calls: wherever it was, the others must learn it.
TEST(ProcessesFailing, NameARankThatIsKilledInMidCall) {
  for (bool shared : {false, true}) {
    Scoreboard* board = makeScoreboard();
    const std::string name = freshName();
    std::vector<Child> children;
    for (int r = 0; r < 3; ++r) {
      children.emplace_back([&, r]() -> std::string {
        auto comm = shm::join(optionsFor(name, r, 3));
        std::vector<float> plain(shared ? 0 : 400000);
        auto* data = shared ? static_cast<float*>(comm->allocShared(1600000)) : plain.data();
        const void* in[] = {data};
        void* out[] = {data};
        for (;;) {
          comm->allReduce({in, out}, 400000, DType::float32, ReduceOp::sum);
          board->ready.fetch_add(1);
        }
      });
    }
    board->waitFor(board->ready, 6);
    children[1].kill();
    EXPECT_EQ(children[1].wait(), "killed");
    expectThrew(children[0].wait(), "ERR_PEER_LOST", 1);
    expectThrew(children[2].wait(), "ERR_PEER_LOST", 1);
  }
}

TEST(ProcessesFailing, NameARankThatIsKilledWhileTheyWaitForIt) {
  Scoreboard* board = makeScoreboard();
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < 3; ++r) {
    children.emplace_back([&, r]() -> std::string {
      auto comm = shm::join(optionsFor(name, r, 3));
      board->ready.fetch_add(1);
      float x = 0;
      // Rank 2 waits for a message of rank 0, not of the one that dies.
      if (r == 1) pause();
      if (r == 0) comm->receive(&x, 1, DType::float32, 1, 0);
      comm->receive(&x, 1, DType::float32, 0, 0);
      return "no error";
    });
  }
  board->waitFor(board->ready, 3);
  children[1].kill();
  EXPECT_EQ(children[1].wait(), "killed");
  expectThrew(children[0].wait(), "ERR_PEER_LOST", 1);
  expectThrew(children[2].wait(), "ERR_PEER_LOST", 1);
}

TEST(ProcessesFailing, NameARankThatExitsWithoutAWord) {
  const std::string name = freshName();
  Child a([&]() -> std::string {
    auto comm = shm::join(optionsFor(name, 0, 2));
    comm->barrier();
    return "no error";
  });
  Child b([&]() -> std::string {
    auto* leaked = shm::join(optionsFor(name, 1, 2)).release();
    return leaked == nullptr ? "null" : "";
  });
  EXPECT_EQ(b.wait(), "");
  expectThrew(a.wait(), "ERR_PEER_LOST", 1);
}

TEST(ProcessesFailing, NameARankThatClosedAndOneThatIsStuck) {
  const auto closed = onRanks(2, [](Communicator& comm, int rank) -> std::string {
    comm.barrier();
    if (rank == 1) return comm.close(), "";
    comm.barrier();
    return "no error";
  });
  EXPECT_EQ(closed[1], "");
  expectThrew(closed[0], "ERR_PEER_LOST", 1);

  Scoreboard* board = makeScoreboard();
  const auto stuck = onRanks(3, [&](Communicator& comm, int rank) -> std::string {
    if (rank == 2) {
      board->waitFor(board->ready, 2);
      comm.barrier();  // it hears that the others gave up on it
      return "no error";
    }
    try {
      comm.barrier({.timeoutMs = 50});
    } catch (...) {
      board->ready.fetch_add(1);
      throw;
    }
    return "no error";
  });
  for (auto& result : stuck) expectThrew(result, "ERR_TIMEOUT", 2);
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

// ---- meeting

TEST(ProcessesMeeting, NamesAllMissingRanksToEverybodyWhoCame) {
  Scoreboard* board = makeScoreboard();
  const std::string name = freshName();
  auto late = [&](int rank, double timeoutMs) {
    return Child([&, rank, timeoutMs]() -> std::string {
      auto options = optionsFor(name, rank, 5);
      options.timeoutMs = timeoutMs;
      board->ready.fetch_add(1);
      shm::join(options);
      return "no error";
    });
  };
  Child a = late(0, 20000);
  Child b = late(4, 20000);
  board->waitFor(board->ready, 2);
  Child c = late(2, 300);  // the first to give up tells the others
  for (Child* child : {&a, &b, &c}) {
    const std::string result = child->wait();
    EXPECT_EQ(result.rfind("threw ERR_TIMEOUT rank 1:", 0), 0u) << result;
    EXPECT_NE(result.find("have not come: 1, 3."), std::string::npos) << result;
  }
}

TEST(ProcessesMeeting, RefusesDifferentSizesAndARankTakenTwice) {
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

TEST(ProcessesMeeting, GoesOnWhenItsLeaderIsKilledAndComesBack) {
  const std::string name = freshName();
  auto join = [&](int rank) {
    return Child([&, rank]() -> std::string {
      auto comm = shm::join(optionsFor(name, rank, 3));
      return runRank(*comm, {Op::allReduce, 3, 50000});
    });
  };
  Child first = join(0);
  // It leads once its name is bound.
  auto bound = [&] {
    FILE* list = fopen("/proc/net/unix", "r");
    char line[512];
    bool found = false;
    while (fgets(line, sizeof(line), list) != nullptr)
      found = found || std::string(line).find(name) != std::string::npos;
    fclose(list);
    return found;
  };
  while (!bound()) usleep(200);
  Child second = join(1);
  first.kill();
  EXPECT_EQ(first.wait(), "killed");
  Child again = join(0);
  Child third = join(2);
  for (Child* child : {&second, &again, &third}) EXPECT_EQ(child->wait(), "");
  EXPECT_FALSE(bound());
}

TEST(ProcessesMeeting, OtherJobsWithTheSameNameDoNotMeet) {
  const std::string name = freshName();
  std::vector<Child> children;
  for (int i = 0; i < 4; ++i) {
    children.emplace_back([&, i]() -> std::string {
      auto options = optionsFor(name, i % 2, 2);
      options.job = i < 2 ? "one" : "two";
      auto comm = shm::join(options);
      int value = i;
      int got = -1;
      comm->send(&value, 1, DType::int32, 1 - i % 2, 0);
      comm->receive(&got, 1, DType::int32, 1 - i % 2, 0);
      return got / 2 == i / 2 ? "" : "met the other job";
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), "");
}

TEST(ProcessesMeeting, ANameIsFreeAgainOnceAllHaveJoined) {
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < 3; ++r) {
    children.emplace_back([&, r]() -> std::string {
      for (int generation = 0; generation < 20; ++generation) {
        auto comm = shm::join(optionsFor(name, r, 3));
        if (auto wrong = runRank(*comm, {Op::allReduce, 3, 5}); !wrong.empty()) return wrong;
      }
      return {};
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), "");
}

// ---- what is left behind

std::set<std::string> namesIn(const char* folder) {
  std::set<std::string> names;
  DIR* dir = opendir(folder);
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) names.insert(entry->d_name);
  closedir(dir);
  return names;
}

TEST(ProcessesLeave, NothingInDevShmNotEvenWhenAllAreKilled) {
  const auto before = namesIn("/dev/shm");
  Scoreboard* board = makeScoreboard();
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < 3; ++r) {
    children.emplace_back([&, r]() -> std::string {
      auto comm = shm::join(optionsFor(name, r, 3));
      auto* memory = static_cast<float*>(comm->allocShared(1 << 20));
      const void* in[] = {memory};
      void* out[] = {memory};
      comm->allReduce({in, out}, 1 << 18, DType::float32, ReduceOp::sum);
      board->ready.fetch_add(1);
      for (;;) pause();
    });
  }
  board->waitFor(board->ready, 3);
  std::set<std::string> added;
  for (auto& entry : namesIn("/dev/shm")) {
    if (before.count(entry) == 0 && entry.find("gradlink") != std::string::npos)
      added.insert(entry);
  }
  EXPECT_TRUE(added.empty());
  for (Child& child : children) child.kill();
  for (Child& child : children) EXPECT_EQ(child.wait(), "killed");
  for (auto& entry : namesIn("/dev/shm")) {
    EXPECT_TRUE(before.count(entry) == 1 || entry.find("gradlink") == std::string::npos) << entry;
  }
}

TEST(ProcessesLeave, NoDescriptorsAndNoMappings) {
  auto mappings = [] {
    FILE* list = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    while (fgets(line, sizeof(line), list) != nullptr)
      count += std::string(line).find("memfd:gradlink") != std::string::npos;
    fclose(list);
    return count;
  };
  const std::string name = freshName();
  std::vector<Child> children;
  for (int r = 0; r < 2; ++r) {
    children.emplace_back([&, r]() -> std::string {
      const auto before = namesIn("/proc/self/fd").size();
      {
        auto comm = shm::join(optionsFor(name, r, 2));
        auto* memory = static_cast<float*>(comm->allocShared(1 << 20));
        const void* in[] = {memory};
        void* out[] = {memory};
        comm->allReduce({in, out}, 1 << 18, DType::float32, ReduceOp::sum);
      }
      if (namesIn("/proc/self/fd").size() != before) return "descriptors are left";
      return mappings() == 0 ? "" : "mappings are left";
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), "");
}

TEST(ProcessesLeave, FreedSharedArraysGiveTheirMemoryBack) {
  expectNone(onRanks(2, [](Communicator& comm, int) -> std::string {
    auto pages = [] {
      FILE* list = fopen("/proc/self/smaps", "r");
      char line[512];
      bool ours = false;
      long sum = 0, kb = 0;
      while (fgets(line, sizeof(line), list) != nullptr) {
        if (std::string(line).find('-') != std::string::npos && std::string(line).find(' ') < 40) {
          ours = std::string(line).find("memfd:gradlink") != std::string::npos;
        }
        if (ours && sscanf(line, "Rss: %ld kB", &kb) == 1) sum += kb;
      }
      fclose(list);
      return sum;
    };
    for (int i = 0; i < 30; ++i) {
      auto* memory = static_cast<float*>(comm.allocShared(8 << 20));
      const void* in[] = {memory};
      void* out[] = {memory};
      comm.allReduce({in, out}, 2 << 20, DType::float32, ReduceOp::sum);
      comm.freeShared(memory);
    }
    comm.barrier();
    // One generation of the peer's may still be mapped, not thirty.
    const long kb = pages();
    return kb < 64 << 10 ? "" : std::to_string(kb) + " kB are still mapped";
  }));
}

TEST(SlowProcesses, ReduceMoreThanTwoGiBPerRank) {
  const std::size_t count = (std::size_t{1} << 31) + 4097;
  expectNone(onRanks(2, [&](Communicator& comm, int rank) -> std::string {
    std::vector<std::int8_t> data(count, static_cast<std::int8_t>(rank + 1));
    data[count - 1] = 5;
    const void* in[] = {data.data()};
    void* out[] = {data.data()};
    comm.allReduce({in, out}, count, DType::int8, ReduceOp::sum, {.timeoutMs = 200000});
    if (data[count - 1] != 10 || data[std::size_t{1} << 31] != 3) return "the end is wrong";
    return std::all_of(data.begin(), data.end() - 1, [](auto v) { return v == 3; }) ? "" : "wrong";
  }));
}

}  // namespace
}  // namespace gradlink::test
