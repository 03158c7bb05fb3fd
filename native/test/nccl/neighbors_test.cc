// What GPUs exchange with some of the others, and windows whose arrays are on GPUs.
#include "core/neighbors.h"
#include "core/counted.h"
#include "core/window.h"
#include "cuda/ranks/staged_communicator.h"
#include "test/nccl/gpu_jobs.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

class GpuArray final : public PlacedArray {
 public:
  GpuArray(cuda::Device& device, std::size_t count, DType dtype)
      : PlacedArray(count, dtype),
        stream_(device),
        memory_(std::make_shared<cuda::DeviceMemory>(device, bytes())) {}
  void* data() const override { return memory_->data(); }
  /// Holds the memory.
  std::shared_ptr<void> share() const { return {memory_, memory_->data()}; }
  void write(const void* from) override { copy(data(), from); }
  void read(void* to) const override { copy(to, data()); }

 private:
  void copy(void* to, const void* from) const {
    stream_.copy(to, from, bytes());
    stream_.synchronize();
  }

  mutable cuda::Stream stream_;
  std::shared_ptr<cuda::DeviceMemory> memory_;
};

Places placesOf(nccl::NcclCommunicator& comm) {
  cuda::Device& device = *comm.devices()[0];
  return {[&](std::size_t count, DType dtype) {
            return std::make_shared<GpuArray>(device, count, dtype);
          },
          [&](WindowSpec spec, const std::shared_ptr<PlacedArray>& array) {
            spec.array = dynamic_cast<const GpuArray&>(*array).share();
            spec.initial = array->data();
            return comm.openWindow(spec);
          }};
}

/// How many ranks, and whether they are threads of one process.
struct Ranks {
  int size;
  bool threads;
};

class GpuNeighbors : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    if (GetParam().size > gpusHere()) GTEST_SKIP() << "needs " << GetParam().size << " GPUs";
  }
  static void onEach(const Body& body) {
    const Body all = [&](nccl::NcclCommunicator& comm, int me) {
      std::string wrong = body(comm, me);
      // Who has heard from its own neighbors may be done before the others are, and what the
      // stand-in's ranks meet in ends with rank 0's process.
      if (wrong.empty()) comm.barrier();
      return wrong;
    };
    const auto [size, threads] = GetParam();
    if (threads) {
      EXPECT_EQ(startGpuThreads(size, all).wait(), "");
      return;
    }
    expectNone(startGpuRanks(size, all));
  }
};

/// What takes two.
class SeveralGpuNeighbors : public GpuNeighbors {};

TEST_P(GpuNeighbors, GatherWhatTheirSourcesHave) {
  onEach([](auto& comm, int /*me*/) { return neighborsGather(comm, placesOf(comm)); });
}

TEST_P(GpuNeighbors, ReachIntoWindows) {
  onEach([](auto& comm, int /*me*/) { return windowsWork(comm, placesOf(comm)); });
}

TEST_P(SeveralGpuNeighbors, DisagreeAlikeAndGoOn) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const int next = (me + 1) % comm.size();
    const int before = (me + comm.size() - 1) % comm.size();
    const auto in = placesOf(comm).filled(10, DType::float32, me);
    const auto out = placesOf(comm).filled(10, DType::float32, 0);
    const auto gather = [&](std::size_t awaited) {
      const NeighborBlock source{before, awaited};
      comm.neighborAllGather(in->data(), 10, DType::float32, out->data(), {&source, 1}, {&next, 1});
    };
    std::string wrong = expectError(ErrorCode::mismatch, -2, {"rank 0", "rank 1"},
                                    [&] { gather(me == 1 ? 11 : 10); });
    if (!wrong.empty()) return wrong;
    gather(10);
    return out->wrong(before);
  });
}

TEST_P(SeveralGpuNeighbors, CompareListsWhereAnyRankWantsIt) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const auto average = [&](bool check) {
      const auto data = placesOf(comm).filled(10, DType::float32, 2 * me);
      const void* const in[] = {data->data()};
      void* const out[] = {data->data()};
      // Rank 0 names 1 as a source, which does not name it.
      Neighborhood own{1, {}, {}, check && me == comm.size() - 1, 2};
      if (me == 0) own.sources = {{1, 1}};
      comm.neighborAllReduce({in, out}, 10, DType::float32, {&own, 1});
      return data->wrong(me == 0 ? 1 : me);
    };
    const std::string wrong =
        expectError(ErrorCode::mismatch, -2, {"rank 0", "rank 1"}, [&] { average(true); });
    return wrong.empty() ? average(false) : wrong;
  });
}

TEST_P(SeveralGpuNeighbors, GossipInPairs) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const int peer = me ^ 1;
    for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
      const auto data = placesOf(comm).filled(5001, dtype, 8 * me);
      comm.pairGossip(data->data(), data->data(), 5001, dtype, peer, 0.5, 0.25);
      if (auto wrong = data->wrong(4 * me + 2 * peer); !wrong.empty()) return wrong;
    }
    const auto data = placesOf(comm).filled(20, DType::int32, 0);
    std::string wrong = expectError(ErrorCode::invalidArgument, -2, "float type", [&] {
      comm.pairGossip(data->data(), data->data(), 20, DType::int32, peer, 0.5, 0.5);
    });
    if (!wrong.empty()) return wrong;
    return expectError(ErrorCode::mismatch, peer, "brings", [&] {
      const std::size_t count = me % 2 == 0 ? 20 : 19;
      comm.pairGossip(data->data(), data->data(), count, DType::float32, peer, 0.5, 0.5);
    });
  });
}

TEST_P(GpuNeighbors, RefuseWindowsWithoutMemory) {
  onEach([](nccl::NcclCommunicator& comm, int me) {
    WindowSpec spec = exponential(me, comm.size(), 3, DType::float32, nullptr);
    return expectError(ErrorCode::invalidArgument, -2, {"memory", "gpu:"},
                       [&] { static_cast<void>(comm.openWindow(spec)); });
  });
}

// One rank whose data go through the host.
TEST(StagedGpu, LeavesWhatIsBehindAResult) {
  if (gpusHere() == 0) GTEST_SKIP() << "needs a GPU";
  expectFine([]() -> std::string {
    cuda::Device& device = cuda::Device::get(0);
    const auto comm = cuda::stageThroughHost(shm::join(controlOf("staged", 0, 1)), device);
    GpuArray in(device, 3, DType::float32);
    in.fill(5);
    for (const bool counted : {false, true}) {
      GpuArray out(device, 8, DType::float32);
      out.fill(7);
      if (counted) {
        Counted all{.parts = {{.in = in.data(), .sent = {3}, .out = out.data(), .capacity = 8}}};
        all.parts[0].hasPlace = true;
        comm->counted({Kind::allGatherV, DType::float32}, all, {});
      } else {
        comm->send(in.data(), 3, DType::float32, 0, 1);
        comm->receive(out.data(), 8, DType::float32, 0, 1);
      }
      std::vector<float> got(8);
      out.read(got.data());
      if (got != std::vector<float>{5, 5, 5, 7, 7, 7, 7, 7}) return counted ? "counted" : "message";
    }
    return {};
  });
}

std::string nameOfRanks(const testing::TestParamInfo<Ranks>& info) {
  return std::to_string(info.param.size) + (info.param.threads ? "Threads" : "Processes");
}
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNeighbors,
                         testing::Values(Ranks{1, false}, Ranks{2, false}, Ranks{4, false},
                                         Ranks{4, true}),
                         nameOfRanks);
INSTANTIATE_TEST_SUITE_P(Ranks, SeveralGpuNeighbors,
                         testing::Values(Ranks{2, false}, Ranks{4, false}, Ranks{4, true}),
                         nameOfRanks);

}  // namespace
}  // namespace gradlink::test
