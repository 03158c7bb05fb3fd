// What GPUs exchange with some of the others, and windows whose arrays are on GPUs.
#include "core/neighbors.h"
#include "core/window.h"
#include "test/nccl/gpu_jobs.h"
#include "test/window_support.h"

namespace gradlink::test {
namespace {

constexpr DType kTypes[] = {DType::float32, DType::float64, DType::float16, DType::int32};

/// An array on a rank's GPU.
class GpuArray {
 public:
  GpuArray(cuda::Device& device, std::size_t count, DType dtype, double value = 0)
      : stream_(device),
        memory_(std::make_shared<cuda::DeviceMemory>(device, count * sizeOf(dtype))),
        count_(count),
        dtype_(dtype) {
    fill(value);
  }

  void* data() const { return memory_->data(); }
  /// Holds the memory.
  std::shared_ptr<void> share() const { return {memory_, memory_->data()}; }
  void fill(double value) {
    const auto host = filled(count_, dtype_, value);
    stream_.copy(data(), host.data(), count_ * sizeOf(dtype_));
    stream_.synchronize();
  }
  /// "" where elements begin..end are all `value`.
  std::string wrong(double value, std::size_t begin, std::size_t end) {
    const std::size_t bytes = sizeOf(dtype_);
    std::vector<std::uint8_t> host(std::max<std::size_t>((end - begin) * bytes, 1));
    stream_.copy(host.data(), static_cast<char*>(data()) + begin * bytes, (end - begin) * bytes);
    stream_.synchronize();
    return wrongAt(host.data(), end - begin, dtype_, value);
  }
  std::string wrong(double value) { return wrong(value, 0, count_); }

 private:
  cuda::Stream stream_;
  std::shared_ptr<cuda::DeviceMemory> memory_;
  std::size_t count_;
  DType dtype_;
};

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
    auto ranks = startGpuRanks(size, all);
    expectNone(ranks);
  }
};

/// What takes two.
class SeveralGpuNeighbors : public GpuNeighbors {};

TEST_P(GpuNeighbors, GatherWhatTheirSourcesHave) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const int size = comm.size();
    for (const DType dtype : kTypes) {
      // Each rank sends another count, to the exponential graph.
      const WindowSpec graph = exponential(me, size, 0, dtype, nullptr);
      const auto countOf = [](int rank) { return static_cast<std::size_t>(rank) * 1000; };
      std::vector<NeighborBlock> sources;
      std::size_t total = 0;
      for (const int source : graph.sources) {
        sources.push_back({source, countOf(source)});
        total += countOf(source);
      }
      GpuArray in(*comm.devices()[0], countOf(me), dtype, me + 1);
      GpuArray out(*comm.devices()[0], total, dtype);
      comm.neighborAllGather(in.data(), countOf(me), dtype, out.data(), sources,
                             graph.destinations);
      std::size_t at = 0;
      for (const NeighborBlock& source : sources) {
        const std::string wrong = out.wrong(source.rank + 1, at, at + source.count);
        if (!wrong.empty()) return "from rank " + std::to_string(source.rank) + ": " + wrong;
        at += source.count;
      }
    }
    return {};
  });
}

TEST_P(SeveralGpuNeighbors, DisagreeAlikeAndGoOn) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const int next = (me + 1) % comm.size();
    const int before = (me + comm.size() - 1) % comm.size();
    GpuArray in(*comm.devices()[0], 10, DType::float32, me);
    GpuArray out(*comm.devices()[0], 20, DType::float32);
    const auto gather = [&](std::size_t awaited) {
      const NeighborBlock source{before, awaited};
      comm.neighborAllGather(in.data(), 10, DType::float32, out.data(), {&source, 1}, {&next, 1});
    };
    std::string wrong = expectError(ErrorCode::mismatch, -2, {"rank 0", "rank 1"},
                                    [&] { gather(me == 1 ? 11 : 10); });
    if (!wrong.empty()) return wrong;
    gather(10);
    return out.wrong(before, 0, 10);
  });
}

TEST_P(SeveralGpuNeighbors, CompareListsWhereAnyRankWantsIt) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const auto average = [&](bool check) {
      GpuArray data(*comm.devices()[0], 10, DType::float32, 2 * me);
      const void* const in[] = {data.data()};
      void* const out[] = {data.data()};
      // Rank 0 names 1 as a source, which does not name it.
      Neighborhood own{0.5, {}, {}, check && me == comm.size() - 1};
      if (me == 0) own.sources = {{1, 0.5}};
      comm.neighborAllReduce({in, out}, 10, DType::float32, {&own, 1});
      return data.wrong(me == 0 ? 1 : me);
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
      GpuArray data(*comm.devices()[0], 5001, dtype, 8 * me);
      comm.pairGossip(data.data(), data.data(), 5001, dtype, peer, 0.5, 0.25);
      if (auto wrong = data.wrong(4 * me + 2 * peer); !wrong.empty()) return wrong;
    }
    GpuArray data(*comm.devices()[0], 20, DType::int32);
    std::string wrong = expectError(ErrorCode::invalidArgument, -2, "float type", [&] {
      comm.pairGossip(data.data(), data.data(), 20, DType::int32, peer, 0.5, 0.5);
    });
    if (!wrong.empty()) return wrong;
    return expectError(ErrorCode::mismatch, peer, "brings", [&] {
      const std::size_t count = me % 2 == 0 ? 20 : 19;
      comm.pairGossip(data.data(), data.data(), count, DType::float32, peer, 0.5, 0.5);
    });
  });
}

std::unique_ptr<Window> openOn(nccl::NcclCommunicator& comm, WindowSpec spec,
                               const GpuArray& array) {
  spec.array = array.share();
  spec.initial = array.data();
  return comm.openWindow(spec);
}

TEST_P(GpuNeighbors, ReachIntoWindows) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const Deadline deadline = Deadline::in(kCallTimeoutMs);
    cuda::Device& device = *comm.devices()[0];
    for (const DType dtype : kTypes) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{4099}}) {
        GpuArray array(device, count, dtype, 4 * (me + 1));
        const WindowSpec spec = exponential(me, comm.size(), count, dtype, nullptr);
        const auto window = openOn(comm, spec, array);
        double sources = 0;
        for (const int source : spec.sources) sources += 4 * (source + 1);
        const auto check = [&](const char* what, double want) {
          const std::string wrong = array.wrong(want);
          return wrong.empty() ? wrong : what + (": " + wrong);
        };
        window->put(window->data(), all(spec.destinations), 1, false, false, deadline);
        GpuArray other(device, count, dtype, 4 * (me + 1));
        window->put(other.data(), all(spec.destinations), 1, true, false, deadline);
        comm.barrier();
        for (const std::uint64_t version : window->versions()) {
          if (version != 1) return "a version is " + std::to_string(version);
        }
        window->update(nullptr, 1, all(spec.sources), 1, true, false, deadline);
        if (auto wrong = check("put", 4 * (me + 1) + 2 * sources); !wrong.empty()) return wrong;
        window->update(nullptr, 1, all(spec.sources), 1, false, false, deadline);
        if (auto wrong = check("reset", 4 * (me + 1) + 2 * sources); !wrong.empty()) return wrong;
        // What the program writes into the array is what neighbors get.
        array.fill(4 * (me + 1));
        comm.barrier();
        window->get(all(spec.sources), false, deadline);
        comm.barrier();
        window->update(other.data(), 1, all(spec.sources), 4, false, false, deadline);
        if (auto wrong = other.wrong(me + 1 + sources / 4); !wrong.empty()) return "get: " + wrong;
        window->free({});
      }
    }
    return {};
  });
}

TEST_P(GpuNeighbors, KeepTheSumOfWhatGoesRound) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const Deadline deadline = Deadline::in(kCallTimeoutMs);
    constexpr std::size_t kCount = 300;
    GpuArray array(*comm.devices()[0], kCount, DType::float64, me + 1);
    const WindowSpec spec = exponential(me, comm.size(), kCount, DType::float64, nullptr);
    const auto window = openOn(comm, spec, array);
    // Powers of two, so that the sums are exact.
    const double share = comm.size() == 4 ? 0.25 : 0.5;
    const double kept = 1 - share * static_cast<double>(spec.destinations.size());
    for (int step = 0; step < 8; ++step) {
      window->put(window->data(), all(spec.destinations, share), kept, true, true, deadline);
      window->update(nullptr, 1, all(spec.sources), 1, true, true, deadline);
    }
    comm.barrier();
    window->update(nullptr, 1, all(spec.sources), 1, true, true, deadline);
    const double p = window->p();
    GpuArray sums(*comm.devices()[0], kCount, DType::float64);
    const void* const in[] = {array.data()};
    void* const out[] = {sums.data()};
    comm.allReduce({in, out}, kCount, DType::float64, ReduceOp::sum);
    window->free({});
    if (comm.size() == 1 && p != 1) return "p of one rank is " + std::to_string(p);
    return sums.wrong(comm.size() * (comm.size() + 1) / 2.0);
  });
}

TEST_P(GpuNeighbors, NeedNothingOfTheTarget) {
  onEach([](nccl::NcclCommunicator& comm, int me) -> std::string {
    const Deadline deadline = Deadline::in(kCallTimeoutMs);
    const int size = comm.size();
    GpuArray array(*comm.devices()[0], 1000, DType::float32, 100 + me);
    WindowSpec spec;
    spec.count = 1000;
    spec.zeroInit = true;
    for (int r = 1; r < size; ++r) {
      const int other = me == 0 ? r : 0;
      if (me != 0 && r != me) continue;
      spec.sources.push_back(other);
      spec.destinations.push_back(other);
    }
    const auto window = openOn(comm, spec, array);
    GpuArray token(*comm.devices()[0], 1, DType::float32);
    std::string wrong;
    if (me == 0) {
      // In a call that waits for all that the others do, and serves none of it.
      for (int r = 1; r < size; ++r) comm.receive(token.data(), 1, DType::float32, r, 0);
      for (const std::uint64_t version : window->versions()) {
        if (version != 3) wrong = "a version is " + std::to_string(version);
      }
    } else {
      for (int i = 0; i < 3; ++i) {
        window->put(window->data(), all({0}), 1, false, false, deadline);
      }
      window->get(all({0}), false, deadline);
      window->update(nullptr, 0, all({0}, 0.5), 1, false, false, deadline);
      wrong = array.wrong(50);
      comm.send(token.data(), 1, DType::float32, 0, 0);
    }
    window->free({});
    return wrong;
  });
}

TEST_P(GpuNeighbors, RefuseWindowsWithoutMemory) {
  onEach([](nccl::NcclCommunicator& comm, int me) {
    WindowSpec spec = exponential(me, comm.size(), 3, DType::float32, nullptr);
    return expectError(ErrorCode::invalidArgument, -2, {"memory", "gpu:"},
                       [&] { static_cast<void>(comm.openWindow(spec)); });
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
