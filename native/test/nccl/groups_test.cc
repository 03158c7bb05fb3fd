// Worlds of processes that hold several GPUs each.
#include <array>

#include "test/nccl/gpu_jobs.h"

namespace gradlink::test {
namespace {

using GroupBody = std::function<std::string(nccl::NcclCommunicator&, int process)>;

/// A process for each count, with as many GPUs, the next ones that are free.
std::vector<Process> startGroups(const std::vector<int>& counts, const GroupBody& body,
                                 const nccl::Options& options = {.timeoutMs = kCallTimeoutMs}) {
  static int worlds = 0;
  const std::string name = "groups-" + std::to_string(worlds++);
  const auto size = static_cast<int>(counts.size());
  std::vector<Process> processes;
  int next = 0;
  for (int p = 0; p < size; ++p) {
    std::vector<int> gpus(static_cast<std::size_t>(counts[static_cast<std::size_t>(p)]));
    std::iota(gpus.begin(), gpus.end(), next);
    next += static_cast<int>(gpus.size());
    processes.emplace_back([=] {
      auto comm = nccl::join(shm::join(controlOf(name, p, size)), gpus, options);
      return body(*comm, p);
    });
  }
  return processes;
}

class GpuGroups : public testing::TestWithParam<std::vector<int>> {
 protected:
  void SetUp() override {
    const int needed = std::accumulate(counts_.begin(), counts_.end(), 0);
    if (gpusHere() < needed) GTEST_SKIP() << "needs " << needed << " GPUs";
  }
  const std::vector<int> counts_ = GetParam();
};

TEST_P(GpuGroups, GiveTheSameAsAPlainLoop) {
  const std::vector<int> counts = counts_;
  const int size = std::accumulate(counts.begin(), counts.end(), 0);
  expectNone(startGroups(counts, [=](auto& comm, int p) -> std::string {
    const auto at = static_cast<std::size_t>(p);
    std::vector<int> ranks(static_cast<std::size_t>(counts[at]));
    std::iota(ranks.begin(), ranks.end(), std::accumulate(counts.begin(), counts.begin() + p, 0));
    const auto held = comm.heldRanks();
    if (comm.backend() != std::string("nccl")) return "another backend";
    if (comm.size() != size || !std::equal(held.begin(), held.end(), ranks.begin(), ranks.end())) {
      return "holds others";
    }
    std::string wrong;
    for (const Op op : kAllOps) {
      for (const Case& c : everyLength(op, size, {0, 1, 4099})) {
        // Weights of GPUs are of floats.
        if (op == Op::neighbor && c.dtype != DType::float32) continue;
        if (wrong.empty()) wrong = runCase(comm, c);
      }
    }
    const Shape shapes[] = {{Kind::allReduce, DType::float32, ReduceOp::sum, 0, 1 << 20}};
    const bool estimated = comm.estimateSeconds(shapes).front().has_value();
    if (wrong.empty() && estimated != (nccl::libraryInfo().simulation && size > 1)) {
      wrong = "estimate";
    }
    comm.barrier();
    return wrong;
  }));
}

INSTANTIATE_TEST_SUITE_P(Counts, GpuGroups,
                         testing::Values(std::vector{1}, std::vector{3}, std::vector{1, 1},
                                         std::vector{1, 1, 1, 1}, std::vector{2, 2},
                                         std::vector{1, 3}, std::vector{2, 1, 1}),
                         [](const auto& info) {
                           std::string name;
                           for (const int count : info.param) name += std::to_string(count);
                           return name;
                         });

using GpuGroupFaults = NeedsGpus<3>;

TEST_F(GpuGroupFaults, NameWhoCalledWhat) {
  expectNone(startGroups({2, 1}, [](auto& comm, int p) -> std::string {
    const Case c{Op::allReduce, 3, 11};
    const HeldBuffers buffers(comm, c);
    std::string wrong = expectError(
        ErrorCode::mismatch, 2,
        {"0, 1 called allReduce(count 11, float32, sum) as 'even'", "rank 2 called", "as 'odd'"},
        [&] {
          comm.allReduce(buffers.view(), p == 1 ? 10 : 11, DType::float32, ReduceOp::sum,
                         {.name = p == 1 ? "odd" : "even"});
        });
    // The first of two is alike.
    nccl::Launch launches[2] = {{{Kind::allReduce, c.dtype, c.reduceOp, 0, 11}, buffers.view()}};
    launches[1] = launches[0];
    if (p == 1) launches[1].shape.count = 10;
    wrong += expectError(ErrorCode::mismatch, 2, "and 1 more", [&] { comm.runTogether(launches); });
    return wrong.empty() ? runCase(comm, c) : wrong;
  }));
}

// Process 1 is at another call when the deadline passes: it is to blame, with its own rank.
TEST_F(GpuGroupFaults, BlameWhoIsAtAnotherCall) {
  const nccl::Options options{.timeoutMs = kCallTimeoutMs, .check = nccl::Check::never};
  expectNone(startGroups(
      {2, 1},
      [](auto& comm, int p) -> std::string {
        if (p == 1) {
          return expectError(ErrorCode::mismatch, -2, "barrier", [&] { comm.barrier(); });
        }
        // Rank 1 has no part in it: that rank 0 alone waits does not make it the one to blame.
        const cuda::DeviceMemory memory(*comm.devices()[0], 4);
        return expectError(ErrorCode::timeout, 2, "rank 2", [&] {
          comm.receive(memory.data(), 1, DType::float32, 2, 0, {.timeoutMs = 300});
        });
      },
      options));
}

TEST_F(GpuGroupFaults, NameALostProcessAndItsRanks) {
  for (const nccl::Check check : {nccl::Check::always, nccl::Check::never}) {
    auto processes =
        startGroups({2, 1},
                    [](auto& comm, int p) -> std::string {
                      if (p == 1) kill(getpid(), SIGKILL);
                      const Ones ones(comm);
                      return expectError(ErrorCode::peerLost, 2, {"process 1", "rank 2", "lost"},
                                         [&] { ones.reduce(); });
                    },
                    {.timeoutMs = kCallTimeoutMs, .check = check});
    EXPECT_EQ(processes[0].wait(), "");
    EXPECT_EQ(processes[1].wait(), "killed");
  }
}

TEST_F(GpuGroupFaults, NameWhoDoesNotCome) {
  expectNone(startGroups({1, 2}, [](auto& comm, int p) -> std::string {
    const Ones ones(comm);
    const auto fails = [&](double timeoutMs) {
      return expectError(ErrorCode::timeout, 1, "process 1 (ranks 1, 2)",
                         [&] { ones.reduce(timeoutMs); });
    };
    if (p == 0) return fails(300);
    // It hears of the deadline when it comes at last.
    while (!errorOf([&] { comm.check("check"); })) usleep(200);
    return fails(kCallTimeoutMs);
  }));
}

TEST_F(GpuGroupFaults, EndAllWithAnAbort) {
  expectNone(startGroups({2, 1}, [](auto& comm, int p) -> std::string {
    const Ones ones(comm);
    if (p == 0) {
      // Then all have joined: who is told before names that call.
      ones.reduce();
      comm.abort("rank 7");
    }
    return expectError(ErrorCode::aborted, 0, {"process 0 (ranks 0, 1)", "rank 7"}, [&] {
      for (;;) ones.reduce();
    });
  }));
}

TEST_F(GpuGroupFaults, RefuseAGpuListedTwice) {
  const std::string name = "groups-twice";
  const std::array<std::vector<int>, 2> lists = {{{0, 0}, {1}}};
  std::vector<Process> processes;
  for (int p = 0; p < 2; ++p) {
    processes.emplace_back([=]() -> std::string {
      const auto join = [&] {
        nccl::join(shm::join(controlOf(name, p, 2)), lists[static_cast<std::size_t>(p)],
                   {.timeoutMs = kCallTimeoutMs});
      };
      if (p == 0) return expectError(ErrorCode::invalidArgument, -1, {"gpu:0", "twice"}, join);
      return expectError(ErrorCode::aborted, 0, {"process 0", "gpu:0", "twice"}, join);
    });
  }
  expectNone(std::move(processes));
}

TEST_F(GpuGroupFaults, RefuseAGpuOfTwoProcesses) {
  const std::string name = "groups-shared";
  const std::array<std::vector<int>, 2> lists = {{{0, 1}, {1}}};
  std::vector<Process> processes;
  for (int p = 0; p < 2; ++p) {
    processes.emplace_back([=]() -> std::string {
      const auto error = errorOf([&] {
        nccl::join(shm::join(controlOf(name, p, 2)), lists[static_cast<std::size_t>(p)],
                   {.timeoutMs = kCallTimeoutMs});
      });
      if (!error) return "met";
      // Who hears of it from the other is told so.
      const bool told = error->code == ErrorCode::aborted;
      return told || lacking(error->what(), {"same one"}).empty() ? "" : error->what();
    });
  }
  expectNone(std::move(processes));
}

TEST_F(GpuGroupFaults, SayWhatIsForOneRankAProcess) {
  expectNone(startGroups({2, 1}, [](auto& comm, int p) -> std::string {
    if (p == 1) return comm.barrier(), "";
    const std::string wrong =
        expectError(ErrorCode::unsupported, -1, "each GPU", [&] { comm.split(0, 0); });
    comm.barrier();
    return wrong;
  }));
}

}  // namespace
}  // namespace gradlink::test
