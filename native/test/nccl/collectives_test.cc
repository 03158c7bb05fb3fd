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
    const std::vector<double> scales(held, 2.0);
    const nccl::Launch scaled{
        {Kind::allReduce, DType::int32, ReduceOp::sum, 0, 3}, buffers.view(), scales};
    wrong += expectError(ErrorCode::invalidArgument, -1, "float types", [&] {
      comm.runTogether({&scaled, 1});
    });
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
    const Ones ones(comm);
    comm.close();
    comm.close();
    comm.abort("too late");
    return expectError(ErrorCode::closed, -1, "is closed", [&] { ones.reduce(); });
  });
}

}  // namespace
}  // namespace gradlink::test
