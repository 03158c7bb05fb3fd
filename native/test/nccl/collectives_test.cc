// What communicators compute whose ranks are GPUs of one process.
#include "test/nccl/support.h"

namespace gradlink::test {
namespace {

/// Collectives whose sums need no kernel of ours, and neighborAllReduce, which does.
class Gpus : public testing::TestWithParam<std::tuple<Op, int>> {};

TEST_P(Gpus, GiveTheSameAsAPlainLoop) {
  const Op op = std::get<0>(GetParam());
  const int size = std::get<1>(GetParam());
  if (size > gpusHere()) GTEST_SKIP() << "needs " << size << " GPUs";
  std::vector<Case> cases = everyLength(op, size, {0, 1, 9, 4099});
  for (const Case& c : everyType(op, size, 45)) cases.push_back(c);
  cases = casesOfGpus(std::move(cases));
  expectFine([&] {
    auto comm = nccl::openLocal(firstGpus(size));
    return runCases(*comm, cases);
  });
}

INSTANTIATE_TEST_SUITE_P(Collectives, Gpus,
                         testing::Combine(testing::ValuesIn(kAllOps), testing::Values(1, 2, 3, 4)),
                         kNameOfCase);

/// Runs on as many GPUs as there are, up to four.
class AllGpus : public testing::Test {
 protected:
  static void with(const std::function<std::string(nccl::NcclCommunicator&)>& body) {
    expectFine([&] {
      auto comm = nccl::openLocal(firstGpus(std::min(cuda::Device::count(), 4)));
      return body(*comm);
    });
  }
};

TEST_F(AllGpus, RunManyCollectivesAsOneLaunch) {
  with([](auto& comm) -> std::string {
    const int size = comm.size();
    const Case cases[] = {{Op::allReduce, size, 100},
                          {Op::broadcast, size, 7, DType::int8},
                          {Op::allReduce, size, 5000, DType::float16, ReduceOp::max},
                          {Op::reduceScatter, size, 33, DType::float64}};
    const Kind kinds[] = {Kind::allReduce, Kind::broadcast, Kind::allReduce, Kind::reduceScatter};
    std::vector<std::unique_ptr<HeldBuffers>> buffers;
    std::vector<nccl::Launch> launches;
    for (std::size_t i = 0; i < std::size(cases); ++i) {
      const Case& c = cases[i];
      buffers.push_back(std::make_unique<HeldBuffers>(comm, c));
      launches.push_back(
          {{kinds[i], c.dtype, c.reduceOp, c.root, c.count}, buffers.back()->view()});
    }
    comm.runTogether(launches);
    for (const auto& each : buffers) {
      if (std::string wrong = each->verify(); !wrong.empty()) return wrong;
    }
    comm.runTogether({});
    return {};
  });
}

TEST_F(AllGpus, ScaleInputsOfSums) {
  with([](auto& comm) -> std::string {
    const int size = comm.size();
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      const Case c{Op::allReduce, size, 300, dtype};
      const HeldBuffers buffers(comm, c);
      std::vector<double> scales;
      for (int r = 0; r < size; ++r) scales.push_back(r % 2 == 0 ? 0.5 : 2);
      const nccl::Launch launch{
          {Kind::allReduce, dtype, ReduceOp::sum, 0, c.count}, buffers.view(), scales};
      comm.runTogether({&launch, 1});
      std::vector<Bytes> inputs;
      std::vector<const void*> sources;
      for (int r = 0; r < size; ++r) inputs.push_back(input(c, r));
      for (const Bytes& bytes : inputs) sources.push_back(bytes.data());
      Bytes want(c.block());
      weightedSum(want.data(), sources, scales, c.count, dtype);
      for (const auto& each : buffers.each) {
        if (std::string wrong = each->compare(want); !wrong.empty()) return wrong;
      }
    }
    std::vector<double> scales(static_cast<std::size_t>(size), 2.0);
    const HeldBuffers integers(comm, {Op::allReduce, size, 3, DType::int32});
    const nccl::Launch wrong{
        {Kind::allReduce, DType::int32, ReduceOp::sum, 0, 3}, integers.view(), scales};
    return expectError(ErrorCode::invalidArgument, -1, "float types", [&] {
      comm.runTogether({&wrong, 1});
    });
  });
}

TEST_F(AllGpus, RunAgainFromACapturedGraph) {
  with([](auto& comm) -> std::string {
    constexpr int kThreadLocal = 1;
    const cuda::Driver& driver = cuda::Driver::get();
    if (driver.beginCapture == nullptr) return "this driver has no graphs";
    // In place: every launch adds all ranks' values once more.
    const Case c{Op::allReduce, comm.size(), 64, DType::float64, ReduceOp::sum, 0, true};
    const HeldBuffers buffers(comm, c);
    std::vector<std::unique_ptr<cuda::Stream>> own;
    std::vector<cuda::Stream*> streams;
    for (cuda::Device* device : comm.devices()) {
      own.push_back(std::make_unique<cuda::Stream>(*device));
      streams.push_back(own.back().get());
      device->makeCurrent();
      cuda::check(driver.beginCapture(streams.back()->handle(), kThreadLocal), "capture");
    }
    const nccl::Launch launch{{Kind::allReduce, c.dtype, c.reduceOp, 0, c.count}, buffers.view()};
    comm.enqueue({&launch, 1}, streams);
    std::vector<cuda::GraphExecHandle> graphs;
    for (cuda::Stream* stream : streams) {
      cuda::GraphHandle graph = nullptr;
      cuda::GraphExecHandle ready = nullptr;
      stream->device().makeCurrent();
      cuda::check(driver.endCapture(stream->handle(), &graph), "capture");
      cuda::check(driver.graphInstantiate(&ready, graph, 0), "instantiating");
      cuda::check(driver.graphDestroy(graph), "destroying");
      graphs.push_back(ready);
    }
    for (int launches = 0; launches < 2; ++launches) {
      for (std::size_t i = 0; i < graphs.size(); ++i) {
        streams[i]->device().makeCurrent();
        cuda::check(driver.graphLaunch(graphs[i], streams[i]->handle()), "launching");
      }
    }
    for (cuda::Stream* stream : streams) stream->synchronize();
    for (const cuda::GraphExecHandle graph : graphs) driver.graphExecDestroy(graph);
    // The second adds up what the first left on all ranks.
    Bytes want = expected(c, 0);
    for (std::size_t i = 0; i < c.count; ++i) {
      const double value = reference::read<double>(want.data(), i) * comm.size();
      reference::write(want.data(), i, value);
    }
    for (const auto& each : buffers.each) {
      if (std::string wrong = each->compare(want); !wrong.empty()) return wrong;
    }
    return {};
  });
}

TEST_F(AllGpus, EstimateWithoutRunning) {
  with([](auto& comm) -> std::string {
    const Shape shapes[] = {
        {Kind::allReduce, DType::float32, ReduceOp::sum, 0, 1 << 28},
        {Kind::barrier},
        {Kind::allReduce, DType::float32, ReduceOp::sum, 0, 1 << 20},
    };
    const auto handles = countOf("gradlinkFakeNcclHandles");
    const auto estimates = comm.estimateSeconds(shapes);
    if (countOf("gradlinkFakeNcclHandles") != handles) return "a communicator is left";
    const std::optional<double> slow = estimates[0];
    const std::optional<double> fast = estimates[2];
    if (estimates[1]) return "a barrier is no collective";
    if (comm.size() == 1 || !nccl::libraryInfo().simulation) {
      return slow || fast ? "an estimate of nothing" : "";
    }
    if (!slow || !fast || *fast <= 0 || *slow <= *fast || *slow > 60) return "estimates";
    return runCase(comm, {Op::allReduce, comm.size(), 100});
  });
}

TEST_F(AllGpus, RegisterMemory) {
  with([](auto& comm) -> std::string {
    using nccl::RegistrationKind;
    if (!nccl::libraryInfo().registration) return "";
    std::unique_ptr<nccl::Registration> outlives;
    std::vector<nccl::Memory> memory;
    std::vector<void*> places;
    for (cuda::Device* device : comm.devices()) {
      memory.emplace_back(*device, 1 << 20);
      places.push_back(memory.back().data());
    }
    for (const auto kind : {RegistrationKind::local, RegistrationKind::symmetric}) {
      const auto made = comm.registerMemory(places, 1 << 20, kind);
      if (kind == RegistrationKind::local && made->kind() != kind) return "kind";
      const bool windows = nccl::libraryInfo().windows;
      if (made->kind() == RegistrationKind::symmetric && !windows) return "windows";
      const std::vector<const void*> in(places.begin(), places.end());
      comm.allReduce({in, places}, 1000, DType::float32, ReduceOp::sum);
    }
    outlives = comm.registerMemory(places, 1 << 20, RegistrationKind::local);
    comm.close();
    return {};
  });
}

TEST_F(AllGpus, StayUsableAfterMisuse) {
  with([](auto& comm) -> std::string {
    const Case c{Op::allReduce, comm.size(), 10};
    const HeldBuffers buffers(comm, c);
    const auto held = static_cast<std::size_t>(comm.size());
    const std::vector<const void*> none(held, nullptr);
    const std::string size = std::to_string(comm.size());
    std::string wrong = expectError(ErrorCode::invalidArgument, 0, "an input", [&] {
      comm.allReduce({none, buffers.out}, 10, DType::float32, ReduceOp::sum);
    });
    wrong += expectError(ErrorCode::invalidArgument, -1, "root " + size,
                         [&] { comm.broadcast(buffers.view(), 10, DType::float32, comm.size()); });
    wrong += expectError(ErrorCode::invalidArgument, -1, size + " inputs",
                         [&] { comm.allReduce({}, 10, DType::float32, ReduceOp::sum); });
    wrong += expectError(ErrorCode::unsupported, -1, "host memory", [&] { comm.allocShared(8); });
    if (comm.size() > 1) {
      wrong += expectError(ErrorCode::invalidArgument, -1, "both ends",
                           [&] { comm.send(buffers.in[0], 1, DType::int8, 1, 0); });
      wrong += expectError(ErrorCode::unsupported, -1, "holds all", [&] { comm.split(0, 0); });
    }
    comm.barrier();
    return wrong + runCase(comm, c);
  });
}

TEST_F(AllGpus, EndInGoodOrder) {
  with([](auto& comm) -> std::string {
    const HeldBuffers buffers(comm, {Op::allReduce, comm.size(), 10});
    comm.close();
    comm.close();
    comm.abort("too late");
    return expectError(ErrorCode::closed, -1, "is closed",
                       [&] { comm.allReduce(buffers.view(), 10, DType::float32, ReduceOp::sum); });
  });
}

TEST_F(AllGpus, TellAnAbortsReasonForEver) {
  with([](auto& comm) -> std::string {
    const HeldBuffers buffers(comm, {Op::allReduce, comm.size(), 10});
    comm.abort("enough");
    std::string wrong;
    for (int i = 0; i < 2; ++i) {
      wrong += expectError(ErrorCode::aborted, -1, "enough", [&] {
        comm.allReduce(buffers.view(), 10, DType::float32, ReduceOp::sum);
      });
    }
    return wrong;
  });
}

}  // namespace
}  // namespace gradlink::test
