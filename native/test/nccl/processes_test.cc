// Ranks that are processes, one GPU each: over a control communicator, and with an id alone.
#include "test/nccl/gpu_jobs.h"
#include "test/waiting.h"

namespace gradlink::test {
namespace {

struct Shared : Scoreboard {
  nccl::UniqueId id{};
};

class GpuPairs : public NeedsGpus<2> {
 protected:
  int size_ = std::min(gpusHere(), 3);
};

TEST_F(GpuPairs, WorkWithAnIdAlone) {
  Shared* shared = makeScoreboard<Shared>();
  std::vector<Process> ranks;
  for (int r = 0; r < size_; ++r) {
    ranks.emplace_back([=, this]() -> std::string {
      if (r == 0) {
        shared->id = nccl::makeUniqueId();
        shared->go = 1;
      }
      Shared::waitFor(shared->go, 1);
      auto comm = nccl::join(shared->id, r, size_, r, {.timeoutMs = 20000});
      for (const Op op : kAllOps) {
        std::string wrong = runCase(*comm, {op, size_, 100});
        if (!wrong.empty()) return wrong;
      }
      comm->barrier();
      const Shape shapes[] = {{Kind::allReduce, DType::float32, ReduceOp::sum, 0, 1 << 20}};
      const bool estimated = comm->estimateSeconds(shapes).front().has_value();
      if (estimated != nccl::libraryInfo().simulation) return "estimate";
      auto part = comm->split(r == 0 ? -1 : 7, -r);
      if (r == 0) return part == nullptr ? "" : "a part for who takes none";
      auto& gpus = dynamic_cast<nccl::NcclCommunicator&>(*part);
      if (part->heldRanks()[0] != size_ - 1 - r) return "order of the part";
      return runCase(gpus, {Op::allGather, size_ - 1, 50});
    });
  }
  expectNone(std::move(ranks));
}

TEST_F(GpuPairs, SendAndReceive) {
  expectNone(startGpuRanks(2, [](auto& comm, int rank) -> std::string {
    cuda::Device& device = *comm.devices()[0];
    cuda::Stream stream(device);
    const cuda::DeviceMemory memory(device, 4000);
    std::vector<int> values(1000, rank == 0 ? 42 : 0);
    stream.copy(memory.data(), values.data(), 4000);
    stream.synchronize();
    for (int round = 0; round < 3; ++round) {
      if (rank == round % 2) {
        comm.send(memory.data(), 1000, DType::int32, 1 - rank, 0);
      } else {
        const Received received = comm.receive(memory.data(), 1000, DType::int32, 1 - rank, 0);
        if (received.source != 1 - rank || received.count != 1000) return "envelope";
      }
    }
    stream.copy(values.data(), memory.data(), 4000);
    stream.synchronize();
    if (values != std::vector<int>(1000, 42)) return "values";
    std::string wrong;
    wrong += expectError(ErrorCode::unsupported, -1, "no tags",
                         [&] { comm.send(memory.data(), 1, DType::int8, 1 - rank, 3); });
    wrong += expectError(ErrorCode::unsupported, -1, "any source",
                         [&] { comm.receive(memory.data(), 1, DType::int8, kAnySource, 0); });
    wrong += expectError(ErrorCode::unsupported, -1, "of itself",
                         [&] { comm.send(memory.data(), 1, DType::int8, rank, 0); });
    wrong += expectError(ErrorCode::invalidArgument, -1, "0..1",
                         [&] { comm.send(memory.data(), 1, DType::int8, 2, 0); });
    comm.barrier();
    return wrong;
  }));
}

TEST_F(GpuPairs, NameAKilledRankWhileItsPartIsAwaited) {
  Shared* shared = makeScoreboard<Shared>();
  auto ranks = startGpuRanks(2, [shared](auto& comm, int rank) -> std::string {
    cuda::Stream stream(*comm.devices()[0]);
    cuda::Stream* const streams[] = {&stream};
    const Ones ones(comm);
    const nccl::Launch launch = ones.launch();
    if (rank == 1) {
      shared->ready.fetch_add(1);
      Shared::waitFor(shared->go, 1);
      return "";
    }
    // Rank 1 never makes its part of this; it is killed meanwhile.
    comm.enqueue({&launch, 1}, streams);
    shared->ready.fetch_add(1);
    std::string wrong = expectError(ErrorCode::peerLost, 1, "was lost", [&] {
      cuda::await([&] { return stream.done(); }, Deadline::in(20000), "allReduce",
                  [&] { comm.check("allReduce"); });
    });
    stream.synchronize();
    return wrong;
  });
  Shared::waitFor(shared->ready, 2);
  ranks[1].kill();
  EXPECT_EQ(ranks[0].wait(), "");
  EXPECT_EQ(ranks[1].wait(), "killed");
}

TEST_F(GpuPairs, HearOfAPeersFailure) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs libraries that fail when asked to";
  expectNone(startGpuRanks(
      2,
      [](auto& comm, int rank) {
        const Ones ones(comm);
        const ErrorCode code = rank == 1 ? ErrorCode::system : ErrorCode::aborted;
        return expectError(code, 1, "system error", [&] { ones.reduce(); });
      },
      20000,
      [](int) {
        return Settings{{"GRADLINK_FAKE_FAULTS", "nccl-async=1@1"}};
      }));
}

TEST_F(GpuPairs, NameARankThatLeft) {
  expectNone(startGpuRanks(2, [](auto& comm, int rank) -> std::string {
    const Ones ones(comm);
    // Else it may leave while the other still joins, whose join then fails.
    comm.barrier();
    if (rank == 1) comm.leave();
    return expectError(rank == 1 ? ErrorCode::closed : ErrorCode::peerLost, 1,
                       rank == 1 ? "has left" : "rank 1", [&] { ones.reduce(); });
  }));
}

TEST_F(GpuPairs, RefuseToBeOfTwoVersions) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "needs libraries that say another version";
  Shared* shared = makeScoreboard<Shared>();
  std::vector<Process> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back(
        [=]() -> std::string {
          if (r == 0) {
            shared->id = nccl::makeUniqueId();
            shared->go = 1;
          }
          Shared::waitFor(shared->go, 1);
          std::string wrong = expectError(ErrorCode::invalidArgument, r, "version", [&] {
            nccl::join(shared->id, r, 2, r, {.timeoutMs = 20000});
          });
          // The other hears it from the stand-in's rendezvous, which is in rank 0's process.
          shared->ready.fetch_add(1);
          Shared::waitFor(shared->ready, 2);
          return wrong;
        },
        Settings{{"GRADLINK_FAKE_FAULTS", r == 0 ? "nccl-version=22809" : "nccl-version=22703"}});
  }
  expectNone(std::move(ranks));
}

}  // namespace
}  // namespace gradlink::test
