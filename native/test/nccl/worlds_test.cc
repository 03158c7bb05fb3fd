// How ranks of large worlds meet, and what they agree on.
#include "core/forwarding_communicator.h"
#include "test/nccl/gpu_jobs.h"

namespace gradlink::test {
namespace {

/// Counts what is agreed on over it.
class Counting final : public ForwardingCommunicator {
 public:
  Counting(std::unique_ptr<Communicator> inner, int* calls)
      : ForwardingCommunicator(std::move(inner)), calls_(calls) {}
  void run(const Call& call) override {
    if (isPlain(call.shape.kind)) ++*calls_;
    ForwardingCommunicator::run(call);
  }

 private:
  int* calls_;
};

using Rank = std::function<std::string(nccl::NcclCommunicator&, int rank, const int& calls)>;

std::vector<Process> startWorld(int size, const nccl::Options& options, const Rank& body) {
  static int worlds = 0;
  const std::string name = "world-" + std::to_string(worlds++);
  std::vector<Process> ranks;
  for (int r = 0; r < size; ++r) {
    ranks.emplace_back([=]() -> std::string {
      int calls = 0;
      auto control = std::make_unique<Counting>(shm::join(controlOf(name, r, size)), &calls);
      auto comm = nccl::join(std::move(control), r, options);
      return body(*comm, r, calls);
    });
  }
  return ranks;
}

class GpuWorlds : public NeedsGpus<2> {
 protected:
  const int size_ = std::min(gpusHere(), 4);
};

TEST_F(GpuWorlds, MeetAtAnIdForSoManyRanks) {
  for (const int ranksOfId : {1, 2, 3, 128}) {
    const nccl::Options options{.timeoutMs = kCallTimeoutMs, .ranksOfId = ranksOfId};
    expectNone(startWorld(size_, options, [&](auto& comm, int, const int&) -> std::string {
      const auto wanted = static_cast<std::size_t>((comm.size() + ranksOfId - 1) / ranksOfId);
      const auto ids = countOf("gradlinkFakeNcclIds");
      if (ids.value_or(0) != 0 && *ids != wanted) return "met at " + std::to_string(*ids) + " ids";
      std::string wrong = runCase(comm, {Op::allReduce, comm.size(), 100});
      if (!wrong.empty()) return wrong;
      auto part = comm.split(0, -comm.heldRanks()[0]);
      wrong =
          runCase(dynamic_cast<nccl::NcclCommunicator&>(*part), {Op::allGather, comm.size(), 5});
      comm.barrier();
      return wrong;
    }));
  }
}

// Parts for collectives meet in the first that moves data: who never makes one has no communicator
// more, in the library and in its GPU's memory.
TEST_F(GpuWorlds, PartsForCollectivesMeetInTheFirst) {
  const nccl::Options options{.timeoutMs = kCallTimeoutMs};
  expectNone(startWorld(size_, options, [&](auto& comm, int rank, const int&) -> std::string {
    const auto has = [](std::size_t wanted) {
      return countOf("gradlinkFakeNcclHandles").value_or(wanted) == wanted;
    };
    if (!has(1)) return "the world is not one communicator";
    auto part = comm.splitForCollectives(rank % 2, -rank);
    auto unused = comm.splitForCollectives(0, rank);
    if (comm.splitForCollectives(-1, rank)) return "a part of nobody";
    if (!has(1)) return "a split has made a communicator";
    auto& gpus = dynamic_cast<nccl::NcclCommunicator&>(*part);
    const int others = size_ / 2 + (rank % 2 == 0 ? size_ % 2 : 0);
    if (part->size() != others) return "the part has " + std::to_string(part->size()) + " ranks";
    part->barrier();
    if (!has(1)) return "a barrier has made a communicator";
    if (others > 1) {
      const std::string early = expectError(ErrorCode::unsupported, -1, "first collective", [&] {
        const cuda::DeviceMemory memory(*comm.devices()[0], 64);
        part->send(memory.data(), 4, DType::float32, 1 - part->heldRanks()[0], 0);
      });
      if (!early.empty()) return early;
    }
    std::string wrong = runCase(gpus, {Op::allReduce, others, 100});
    if (wrong.empty()) wrong = runCase(gpus, {Op::neighbor, others, 5});
    if (wrong.empty()) wrong = runCase(comm, {Op::allGather, comm.size(), 5});
    if (!wrong.empty()) return wrong;
    if (!has(2)) return "the first collective has not made the one communicator it needs";
    comm.barrier();
    part->close();
    return has(1) ? "" : "the part has left its communicator";
  }));
}

// Who does not come to the rendezvous is named, as in any call.
TEST_F(GpuWorlds, PartsThatMeetLateNameWhoIsMissing) {
  const nccl::Options options{.timeoutMs = kCallTimeoutMs, .check = nccl::Check::never};
  expectNone(startWorld(2, options, [](auto& comm, int rank, const int&) -> std::string {
    auto part = comm.splitForCollectives(0, rank);
    auto& gpus = dynamic_cast<nccl::NcclCommunicator&>(*part);
    if (rank == 1) {
      comm.barrier();
      return "";
    }
    const Ones ones(gpus);
    const std::string wrong =
        expectError(ErrorCode::timeout, 1, "rank 1", [&] { ones.reduce(300); });
    comm.barrier();
    return wrong;
  }));
}

/// The calls over the control communicator of five equal sums and one of another length.
void expectAgreements(int size, nccl::Check check, int expected) {
  const nccl::Options options{.timeoutMs = kCallTimeoutMs, .check = check};
  expectNone(startWorld(size, options, [&](auto& comm, int, const int& calls) -> std::string {
    const HeldBuffers buffers(comm, {Op::allReduce, comm.size(), 12});
    const int before = calls;
    for (const std::size_t count : {12, 12, 12, 12, 12, 11}) {
      comm.allReduce(buffers.view(), count, DType::float32, ReduceOp::sum);
    }
    const int agreed = calls - before;
    // Not for the agreement's sake: everybody comes.
    comm.barrier();
    if (calls != before + agreed + 1) return "a barrier is no rendezvous";
    return agreed == expected ? "" : "agreed " + std::to_string(agreed) + " times";
  }));
}

TEST_F(GpuWorlds, AgreeAlwaysOnceOrNever) {
  expectAgreements(size_, nccl::Check::always, 6);
  expectAgreements(size_, nccl::Check::first, 2);
  expectAgreements(size_, nccl::Check::never, 0);
}

}  // namespace
}  // namespace gradlink::test
