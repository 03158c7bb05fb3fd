// What goes wrong in the library, in one process. The stand-ins make it go wrong.
#include <atomic>

#include "test/nccl/support.h"

namespace gradlink::test {
namespace {

class NcclFaults : public OnFakes {
 protected:
  static Settings fault(const std::string& faults) { return {{"GRADLINK_FAKE_FAULTS", faults}}; }
  static void onGpus(int count, const std::string& faults,
                     const std::function<std::string(nccl::NcclCommunicator&)>& body) {
    expectFine(fault(faults), [&] {
      auto comm = nccl::openLocal(firstGpus(count), {.timeoutMs = 20000});
      return body(*comm);
    });
  }
};

TEST_F(NcclFaults, AnAsynchronousErrorNamesItsRankAndEndsTheCommunicator) {
  // Rank 1, which is asked before, knows only that another has failed.
  onGpus(4, "nccl-async=2@2,nccl-remote=1", [](auto& comm) -> std::string {
    const Ones ones(comm);
    ones.reduce();
    std::string wrong = expectError(ErrorCode::system, 2, "system error", [&] { ones.reduce(); });
    wrong += expectError(ErrorCode::system, 2, "has failed", [&] { comm.barrier(); });
    return wrong;
  });
}

TEST_F(NcclFaults, ACollectiveThatNeverEndsIsATimeout) {
  onGpus(4, "nccl-stuck=1@3", [](auto& comm) -> std::string {
    const Ones ones(comm);
    std::string wrong =
        expectError(ErrorCode::timeout, -1, "rank 0 (gpu:0", [&] { ones.reduce(100); });
    return wrong + expectError(ErrorCode::timeout, -1, "has failed", [&] { ones.reduce(); });
  });
}

TEST_F(NcclFaults, ARankThatNeverArrivesEndsTheRendezvous) {
  expectFine(fault("nccl-never=1"), [] {
    return expectError(ErrorCode::timeout, -1, "the rendezvous",
                       [] { nccl::openLocal(firstGpus(3), {.timeoutMs = 100}); });
  });
}

TEST_F(NcclFaults, ARendezvousCanBeGivenUp) {
  expectFine(fault("nccl-never=0"), [] {
    std::atomic<bool> cancelled{false};
    std::thread canceller([&] { cancelled = true; });
    std::string wrong = expectError(ErrorCode::closed, -1, "given up", [&] {
      nccl::openLocal(firstGpus(2), {.timeoutMs = 60000, .cancelled = &cancelled});
    });
    canceller.join();
    return wrong;
  });
}

TEST_F(NcclFaults, AnAbortEndsACallOnAnotherThread) {
  onGpus(2, "nccl-stuck=1@0", [](auto& comm) -> std::string {
    const Ones ones(comm);
    std::thread aborter([&] { comm.abort("no more"); });
    std::string wrong = expectError(ErrorCode::aborted, -1, "no more", [&] { ones.reduce(); });
    aborter.join();
    return wrong + expectError(ErrorCode::aborted, -1, "no more", [&] { ones.reduce(); });
  });
}

TEST_F(NcclFaults, LeavingEndsACallOnAnotherThread) {
  onGpus(2, "nccl-stuck=1@1", [](auto& comm) -> std::string {
    const Ones ones(comm);
    std::thread leaver([&] { comm.leave(); });
    std::string wrong = expectError(ErrorCode::closed, -2, "has left", [&] { ones.reduce(); });
    leaver.join();
    return wrong;
  });
}

TEST_F(NcclFaults, WhatIsEnqueuedIsEndedByACheck) {
  onGpus(2, "nccl-async=1", [](auto& comm) -> std::string {
    const Ones ones(comm);
    cuda::Stream first(*comm.devices()[0]);
    cuda::Stream second(*comm.devices()[1]);
    cuda::Stream* const streams[] = {&first, &second};
    const nccl::Launch launch = ones.launch();
    // The error may come while it is still being launched.
    std::string wrong = expectError(ErrorCode::system, 0, "allReduce", [&] {
      comm.enqueue({&launch, 1}, streams);
      cuda::await([&] { return first.done() && second.done(); }, Deadline::in(20000), "allReduce",
                  [&] { comm.check("allReduce"); });
    });
    // The check ended it: nothing holds the streams.
    first.synchronize();
    second.synchronize();
    return wrong;
  });
}

TEST_F(NcclFaults, TwoRanksOnOneGpuWorkWhereTheLibraryPermitsIt) {
  Settings settings = fault("nccl-version=23007");
  settings["NCCL_MULTI_RANK_GPU_ENABLE"] = "1";
  expectFine(settings, [] {
    const int gpus[] = {0, 0};
    auto comm = nccl::openLocal(gpus, {.timeoutMs = 20000});
    return runCase(*comm, {Op::allReduce, 2, 1000});
  });
}

TEST_F(NcclFaults, NoRoomForAnInboxLeavesTheCommunicatorUsable) {
  onGpus(2, "", [](auto& comm) -> std::string {
    const std::size_t count = std::size_t{1} << 45;
    const Ones ones(comm);
    const std::vector<Neighborhood> rings{ringOf(0, 2), ringOf(1, 2)};
    std::string wrong = expectError(ErrorCode::outOfMemory, -1, "cannot allocate", [&] {
      comm.neighborAllReduce(ones.buffers.view(), count, DType::float32, rings);
    });
    return wrong + runCase(comm, {Op::neighbor, 2, 100});
  });
}

// A rank alone may have no memory, while its peers wait for it.
TEST_F(NcclFaults, AScanWithoutRoomForItsBlocksEndsTheCommunicator) {
  onGpus(2, "oom=20000000", [](auto& comm) -> std::string {
    // In and out have room, the blocks of both ranks have not.
    const Case large{Op::scan, 2, 10'000'000, DType::int8, ReduceOp::sum, 0, true};
    HeldBuffers buffers(comm, large);
    std::string wrong =
        expectError(ErrorCode::outOfMemory, -2, "", [&] { call(comm, large, buffers.view()); });
    if (!wrong.empty()) return wrong;
    return expectError(ErrorCode::outOfMemory, -2, "", [&] { comm.barrier(); });
  });
}

TEST_F(NcclFaults, OldLibrariesDoTheSameWithMessages) {
  for (const char* faults :
       {"nccl-version=21805", "missing=ncclAlltoAll,missing=ncclGather,missing=ncclScatter"}) {
    SCOPED_TRACE(faults);
    expectFine(fault(faults), []() -> std::string {
      if (nccl::libraryInfo().exchanges) return "not an old library";
      for (const int size : {1, 2, 4}) {
        auto comm = nccl::openLocal(firstGpus(size), {.timeoutMs = 20000});
        for (const Op op : kAllOps) {
          auto wrong = runCases(*comm, casesOfGpus(everyLength(op, size, {0, 1, 1000})));
          if (!wrong.empty()) return wrong;
        }
      }
      return "";
    });
  }
}

TEST_F(NcclFaults, WhatAnOldLibraryCannotDoIsSaid) {
  expectFine(fault("nccl-version=21805"), []() -> std::string {
    const nccl::LibraryInfo& info = nccl::libraryInfo();
    if (info.simulation || info.registration || info.windows || info.float8) return "info";
    if (nccl::versionText(info.version) != "2.18.5") return "version";
    auto comm = nccl::openLocal(firstGpus(2), {.timeoutMs = 20000});
    const Shape shapes[] = {{Kind::allReduce, DType::float32, ReduceOp::sum, 0, 100}};
    if (comm->estimateSeconds(shapes).front()) return "an estimate from nowhere";
    const nccl::Memory memory[] = {nccl::Memory(*comm->devices()[0], 4096),
                                   nccl::Memory(*comm->devices()[1], 4096)};
    void* const places[] = {memory[0].data(), memory[1].data()};
    return expectError(ErrorCode::unsupported, -1, {"2.18.5", "register"},
                       [&] { comm->registerMemory(places, 4096, nccl::RegistrationKind::local); });
  });
  onGpus(1, "missing=ncclRedOpCreatePreMulSum", [](auto& comm) -> std::string {
    const Ones ones(comm);
    const double scale = 2;
    const nccl::Launch launch = ones.launch({&scale, 1});
    return expectError(ErrorCode::unsupported, -1, "ncclRedOpCreatePreMulSum", [&] {
      comm.runTogether({&launch, 1});
    });
  });
}

TEST_F(NcclFaults, ALibraryWithoutWindowsRegistersForItself) {
  onGpus(1, "nccl-version=22100", [](auto& comm) -> std::string {
    const nccl::Memory memory(*comm.devices()[0], 4096);
    void* const places[] = {memory.data()};
    const auto made = comm.registerMemory(places, 4096, nccl::RegistrationKind::symmetric);
    // It outlives its communicator.
    comm.close();
    return made->kind() == nccl::RegistrationKind::local ? "" : "kind";
  });
}

TEST_F(NcclFaults, WindowsThatTheLibraryDoesNotMakeAreNotSymmetric) {
  onGpus(2, "nccl-windows=none", [](auto& comm) -> std::string {
    const nccl::Memory memory[] = {nccl::Memory(*comm.devices()[0], 4096),
                                   nccl::Memory(*comm.devices()[1], 4096)};
    void* const places[] = {memory[0].data(), memory[1].data()};
    const auto made = comm.registerMemory(places, 4096, nccl::RegistrationKind::symmetric);
    return made->kind() == nccl::RegistrationKind::local ? "" : "kind";
  });
}

// Older libraries refuse float8 there in every collective, and end the communicator with it.
TEST_F(NcclFaults, Float8IsMovedOnGpusThatCannotAddIt) {
  const auto body = []() -> std::string {
    auto comm = nccl::openLocal(firstGpus(2), {.timeoutMs = 20000});
    const auto asFloat8 = [&](Op op, const HeldBuffers& buffers) {
      call(*comm, {op, 2, 1000, DType::float8e4m3}, buffers.view());
    };
    for (const Op op : {Op::allGather, Op::broadcast, Op::allToAll, Op::gather, Op::scatter}) {
      // Moved elements are bytes.
      const HeldBuffers buffers(*comm, {op, 2, 1000, DType::uint8});
      asFloat8(op, buffers);
      if (std::string wrong = buffers.verify(); !wrong.empty()) return wrong;
    }
    const HeldBuffers buffers(*comm, {Op::allReduce, 2, 1000, DType::uint8});
    const std::string wrong = expectError(ErrorCode::unsupported, -1, {"gpu:", "float8e4m3", "9.0"},
                                          [&] { asFloat8(Op::allReduce, buffers); });
    return wrong + runCase(*comm, {Op::allReduce, 2, 100});
  };
  for (const char* version : {"22408", "22703", "22809"}) {
    SCOPED_TRACE(version);
    expectFine(fault(std::string("capability=86,nccl-version=") + version), body);
  }
}

// The stand-in ends the process where two members of such a version end at once.
TEST_F(NcclFaults, MembersOfAnOldLibraryEndOneAfterTheOther) {
  onGpus(4, "nccl-version=22304,nccl-stuck=1@3", [](auto& comm) -> std::string {
    const Ones ones(comm);
    return expectError(ErrorCode::timeout, -1, "", [&] { ones.reduce(100); });
  });
}

TEST_F(NcclFaults, AFailedRegistrationLeavesNothing) {
  onGpus(1, "", [](auto& comm) -> std::string {
    // Windows want memory of the library's own.
    const cuda::DeviceMemory memory(*comm.devices()[0], 4096);
    void* const places[] = {memory.data()};
    return expectError(ErrorCode::invalidArgument, 0, "ncclMemAlloc", [&] {
      comm.registerMemory(places, 4096, nccl::RegistrationKind::symmetric);
    });
  });
}

TEST_F(NcclFaults, ALibraryThatIsTooOldIsRefusedByName) {
  expectFine(fault("nccl-version=21304"), [] {
    return expectError(ErrorCode::backendUnavailable, -1, "2.13.4 (" /* its file */,
                       [] { nccl::libraryInfo(); }) +
           expectError(ErrorCode::backendUnavailable, -1, "ncclCommFinalize",
                       [] { nccl::makeUniqueId(); });
  });
}

TEST(NcclLibrary, ThatIsNotThereIsNamed) {
  expectFine({{"GRADLINK_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}}, [] {
    return expectError(ErrorCode::backendUnavailable, -1,
                       {"GRADLINK_NCCL_LIBRARY", "'/nowhere/libnccl.so.2'"},
                       [] { nccl::libraryInfo(); });
  });
}

TEST(NcclLibrary, VersionsOfBothEncodingsAreRead) {
  EXPECT_EQ(nccl::versionText(2708), "2.7.8");
  EXPECT_EQ(nccl::versionText(21805), "2.18.5");
  EXPECT_EQ(nccl::versionText(23007), "2.30.7");
  const std::string unknown = nccl::versionText(0);
  EXPECT_FALSE(unknown.empty());
  EXPECT_EQ(unknown.find_first_of("0123456789"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace gradlink::test
