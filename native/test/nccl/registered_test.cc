// Memory that the library knows: allocRegistered, its fall-backs, and what is checked of its use.
#include "test/nccl/gpu_jobs.h"

namespace gradlink::test {
namespace {

constexpr std::size_t kRegisteredBytes = 1 << 16;

/// In the order of the stand-in's counts.
enum class Registered { local, windows, live, symmetric };

/// "" where the stand-in counts this, or where there is none.
std::string expectCount(const char* what, Registered which, std::size_t expected) {
  const auto count = countOf("gradlinkFakeNcclRegistered", static_cast<int>(which));
  if (!count || *count == expected) return "";
  return std::string(what) + ": " + std::to_string(*count) + ", not " + std::to_string(expected) +
         "; ";
}

using Parts = std::vector<std::unique_ptr<nccl::RegisteredMemory>>;

std::vector<void*> placesOf(const Parts& parts, std::size_t offset = 0) {
  std::vector<void*> places;
  for (const auto& part : parts) places.push_back(static_cast<std::byte*>(part->data()) + offset);
  return places;
}

/// In place, of `count` floats: whatever they hold.
void sumFloats(nccl::NcclCommunicator& comm, const std::vector<void*>& places, std::size_t count) {
  const std::vector<const void*> in(places.begin(), places.end());
  comm.allReduce({in, places}, count, DType::float32, ReduceOp::sum);
}

/// Sums one of rank 0, two of rank 1 and so on, in memory of allocRegistered.
std::string sumsInRegistered(nccl::NcclCommunicator& comm, const Parts& parts) {
  constexpr std::size_t kCount = 1000;
  const auto places = placesOf(parts);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::vector<float> own(kCount, static_cast<float>(comm.heldRanks()[i] + 1));
    cuda::Stream stream(*comm.devices()[i]);
    stream.copy(places[i], own.data(), kCount * sizeof(float));
    stream.synchronize();
  }
  const auto expected = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
  sumFloats(comm, places, kCount);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::vector<float> sum(kCount);
    cuda::Stream stream(*comm.devices()[i]);
    stream.copy(sum.data(), places[i], kCount * sizeof(float));
    stream.synchronize();
    if (sum != std::vector<float>(kCount, expected)) return "a wrong sum; ";
  }
  return "";
}

class RegisteredMemories : public testing::Test {
 protected:
  static void with(const std::function<std::string(nccl::NcclCommunicator&, const Parts&)>& body,
                   const Settings& settings = {}) {
    expectFine(settings, [&] {
      auto comm =
          nccl::openLocal(firstGpus(std::min(cuda::Device::count(), 2)), {.timeoutMs = 20000});
      const Parts parts = comm->allocRegistered(kRegisteredBytes);
      return body(*comm, parts);
    });
  }
  static Settings faults(const std::string& list) { return {{"GRADLINK_FAKE_FAULTS", list}}; }
  void SetUp() override {
    if (gpusHere() == 0) GTEST_SKIP() << "needs a GPU";
  }
};

/// Those whose library is told what it cannot do.
class RegisteredOnStandIns : public RegisteredMemories {
 protected:
  void SetUp() override {
    RegisteredMemories::SetUp();
    if (!testsRunOnFakes()) GTEST_SKIP() << "only the stand-in has faults";
  }
};

TEST_F(RegisteredMemories, AreWindowsWhereTheLibraryHasThem) {
  with([](auto& comm, const Parts& parts) -> std::string {
    std::string wrong;
    for (const auto& part : parts) {
      if (part->data() == nullptr) wrong += "no memory; ";
      if (nccl::libraryInfo().windows && !part->kind()) wrong += "not registered; ";
    }
    if (comm.size() > 1) {
      wrong += expectCount("windows", Registered::windows, 2);
      wrong += sumsInRegistered(comm, parts);
      wrong += expectCount("symmetric", Registered::symmetric, 1);
      // In place, what each rank reads of its own is another block.
      const std::vector<void*> whole = placesOf(parts);
      const std::vector<const void*> own{whole[0], static_cast<std::byte*>(whole[1]) + 400};
      comm.allGather({own, whole}, 100, DType::float32);
    }
    return wrong;
  });
}

TEST_F(RegisteredMemories, AreGivenBackOneByOne) {
  with([](auto& comm, const Parts&) -> std::string {
    const auto held = static_cast<std::size_t>(comm.size());
    Parts parts = comm.allocRegistered(kRegisteredBytes);
    std::string wrong = expectCount("both", Registered::live, 2 * held);
    parts.pop_back();
    wrong += expectCount("one less", Registered::live, 2 * held - 1);
    parts.clear();
    return wrong + expectCount("one call's", Registered::live, held);
  });
}

TEST_F(RegisteredMemories, OutliveTheirCommunicator) {
  expectFine([] {
    Parts parts;
    {
      auto comm = nccl::openLocal(firstGpus(1), {.timeoutMs = 20000});
      parts = comm->allocRegistered(kRegisteredBytes);
    }
    cuda::Stream stream(cuda::Device::get(0));
    stream.zero(parts.front()->data(), kRegisteredBytes);
    stream.synchronize();
    return expectCount("live", Registered::live, 0);
  });
}

TEST_F(RegisteredOnStandIns, FallBackAsFarAsTheLibraryIsOld) {
  const auto body = [](std::optional<nccl::RegistrationKind> kind) {
    return [kind](nccl::NcclCommunicator& comm, const Parts& parts) -> std::string {
      for (const auto& part : parts) {
        if (part->kind() != kind) return "another kind";
      }
      return sumsInRegistered(comm, parts);
    };
  };
  const auto local = body(nccl::RegistrationKind::local);
  const auto none = body(std::nullopt);
  with(local, faults("nccl-version=22602"));
  with(local, faults("missing=ncclCommWindowDeregister"));
  with(local, faults("nccl-windows=none"));
  with(none, faults("nccl-version=21805"));
  with(none, faults("missing=ncclMemAlloc,missing=ncclCommRegister"));
  with(none, {{"GRADLINK_NCCL_REGISTER", "no"}});
}

TEST_F(RegisteredOnStandIns, ARefusedWindowSaysHowToDoWithout) {
  for (const char* how : {"nccl-windows=fails", "nccl-windows=stuck"}) {
    SCOPED_TRACE(how);
    const bool stuck = std::string(how) == "nccl-windows=stuck";
    expectFine(faults(how), [stuck] {
      auto comm = nccl::openLocal(firstGpus(2), {.timeoutMs = stuck ? 300.0 : 20000});
      return expectError(stuck ? ErrorCode::timeout : ErrorCode::system, -2,
                         "GRADLINK_NCCL_REGISTER=no",
                         [&] { comm->allocRegistered(kRegisteredBytes); });
    });
  }
}

TEST_F(RegisteredOnStandIns, AnOtherWordForTheVariableIsRefused) {
  expectFine({{"GRADLINK_NCCL_REGISTER", "on"}}, [] {
    return expectError(ErrorCode::invalidArgument, -1, {"GRADLINK_NCCL_REGISTER", "'on'"},
                       [] { nccl::libraryInfo(); });
  });
}

/// One rank a process: they agree on their calls.
class RegisteredInAJob : public RegisteredMemories {
 protected:
  void SetUp() override {
    if (gpusHere() < 2) GTEST_SKIP() << "needs 2 GPUs";
  }
};

std::string useTogether(nccl::NcclCommunicator& comm, int rank) {
  Parts parts = comm.allocRegistered(kRegisteredBytes);
  std::string wrong = sumsInRegistered(comm, parts);
  const auto refuse = [&](const char* what, const std::vector<void*>& places) {
    wrong += expectError(ErrorCode::mismatch, 1, what, [&] { sumFloats(comm, places, 100); });
  };
  refuse("same slice", placesOf(parts, rank == 1 ? 512 : 0));
  // One rank lets go of its part alone, and the other's is as good as before.
  if (rank == 0) parts.clear();
  const cuda::DeviceMemory plain(*comm.devices()[0], 4096);
  refuse("same slice", rank == 0 ? std::vector<void*>{plain.data()} : placesOf(parts));
  wrong += expectError(ErrorCode::mismatch, 1, "allocRegistered of 4096",
                       [&] { comm.allocRegistered(rank == 0 ? 4096 : 8192); });
  wrong += expectError(ErrorCode::mismatch, 1, "allocRegistered of 4096", [&] {
    if (rank == 0) return static_cast<void>(comm.allocRegistered(4096));
    sumFloats(comm, {plain.data()}, 100);
  });
  sumFloats(comm, {plain.data()}, 100);
  comm.barrier();
  return wrong;
}

TEST_F(RegisteredInAJob, IsUsedTogetherAndAtTheSamePlace) {
  expectNone(startGpuRanks(2, useTogether));
}

TEST_F(RegisteredInAJob, OfThreadsToo) { EXPECT_EQ(startGpuThreads(2, useTogether).wait(), ""); }

TEST_F(RegisteredInAJob, IsRefusedOnAllWhereOneHasNoRoom) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "only the stand-in has faults";
  expectNone(startGpuRanks(
      2,
      [](nccl::NcclCommunicator& comm, int) -> std::string {
        std::string wrong = expectError(ErrorCode::outOfMemory, -2, "",
                                        [&] { comm.allocRegistered(std::size_t{1} << 30); });
        return wrong + sumsInRegistered(comm, comm.allocRegistered(kRegisteredBytes));
      },
      kCallTimeoutMs,
      [](int rank) {
        return rank == 1 ? Settings{{"GRADLINK_FAKE_MEMORY", "268435456"}} : Settings{};
      }));
}

TEST_F(RegisteredInAJob, IsRefusedWhereOnlySomeRegister) {
  if (!testsRunOnFakes()) GTEST_SKIP() << "only the stand-in has windows everywhere";
  expectNone(startGpuRanks(
      2,
      [](nccl::NcclCommunicator& comm, int) {
        return expectError(ErrorCode::mismatch, 1, "be registered",
                           [&] { comm.allocRegistered(kRegisteredBytes); });
      },
      kCallTimeoutMs,
      [](int rank) {
        return rank == 1 ? Settings{{"GRADLINK_NCCL_REGISTER", "no"}} : Settings{};
      }));
}

}  // namespace
}  // namespace gradlink::test
