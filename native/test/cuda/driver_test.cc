// What is said where the driver is missing, is not one, or does not start.
#include "cuda/driver.h"

#include "cuda/info.h"
#include "cuda/kernel_module.h"
#include "cuda/nvml.h"
#include "cuda/shared_library.h"
#include "test/cuda/support.h"

namespace gradlink::cuda {
namespace {

using testing::ExitedWithCode;

using CudaDriverDeathTest = FreshProcesses;
using CudaDriverOnFakes = FreshFakes;

void load() { Driver::get(); }

TEST_F(CudaDriverDeathTest, ANamedFileThatIsMissingIsNamedWithItsVariable) {
  EXPECT_EXIT(
      inProcess({{"GRADLINK_CUDA_LIBRARY", "/nowhere/libcuda.so.1"}}, load), ExitedWithCode(1),
      "^ERR_BACKEND_UNAVAILABLE: .*CUDA driver.* GRADLINK_CUDA_LIBRARY .*'/nowhere/libcuda.so.1'.*"
      "\\(/nowhere/libcuda.so.1: .*\\).* libcuda.so.1\n$");
}

TEST_F(CudaDriverDeathTest, AFileThatIsNoLibraryIsReportedWithTheLoadersReason) {
  EXPECT_EXIT(inProcess({{"GRADLINK_CUDA_LIBRARY", "/dev/null"}}, load), ExitedWithCode(1),
              "GRADLINK_CUDA_LIBRARY .*'/dev/null'.* \\(/dev/null: ");
}

TEST_F(CudaDriverDeathTest, ALibraryThatIsNoDriverIsToldByWhatItLacks) {
  EXPECT_EXIT(
      inProcess({{"GRADLINK_CUDA_LIBRARY", "libm.so.6"}}, load), ExitedWithCode(1),
      "CUDA driver /.*libm.* cuInit, cuDriverGetVersion, cuGetErrorName and [0-9]+ .* CUDA 11.0 ");
}

TEST_F(CudaDriverDeathTest, TheSameErrorComesAgain) {
  expectFine({{"GRADLINK_CUDA_LIBRARY", "/nowhere/libcuda.so.1"}}, [] {
    const std::string first = messageOf(ErrorCode::backendUnavailable, load);
    const std::string second = messageOf(ErrorCode::backendUnavailable, [] { Device::get(0); });
    EXPECT_EQ(first, second);
  });
}

TEST_F(CudaDriverDeathTest, SaysWhereALibraryWasLookedForAndWhatToDo) {
  EXPECT_EXIT(inProcess({{"LD_LIBRARY_PATH", "/here:/there"}},
                        [] {
                          SharedLibrary({.what = "the thing",
                                         .file = "libgradlink-absent.so.1",
                                         .variable = "GRADLINK_ABSENT_LIBRARY",
                                         .folders = {"/nowhere/lib", "/elsewhere"},
                                         .remedy = "install it"});
                        }),
              ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: the thing .* libgradlink-absent.so.1 .*"
              "LD_LIBRARY_PATH.* '/here:/there'.* /nowhere/lib and /elsewhere "
              "\\(libgradlink-absent.so.1: .*\\).* install it.* GRADLINK_ABSENT_LIBRARY ");
}

TEST(SharedLibrary, IsFoundInTheFoldersOfItsSpecUnlessAnotherFileIsNamed) {
  const LibrarySpec known{.what = "the thing",
                          .file = "libm.so.6",
                          .variable = "GRADLINK_TEST_LIBRARY",
                          .folders = {},
                          .remedy = "install it"};
  const std::string path = SharedLibrary(known).file();
  ASSERT_EQ(path.front(), '/') << path;
  LibrarySpec elsewhere = known;
  elsewhere.file = "libgradlink-thing-" + std::to_string(getpid()) + ".so.1";
  const std::string link = testing::TempDir() + elsewhere.file;
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  messageOf(ErrorCode::backendUnavailable, [&] { SharedLibrary{elsewhere}; });
  elsewhere.folders = {"/nowhere", testing::TempDir()};
  EXPECT_NE(SharedLibrary(elsewhere).find("cos"), nullptr);
  EXPECT_EQ(SharedLibrary(elsewhere).find("cuInit"), nullptr);
  setenv("GRADLINK_TEST_LIBRARY", "/nowhere/libthing.so", 1);
  messageOf(ErrorCode::backendUnavailable, [&] { SharedLibrary{elsewhere}; });
  setenv("GRADLINK_TEST_LIBRARY", "", 1);
  EXPECT_NE(SharedLibrary(elsewhere).find("cos"), nullptr);
  unsetenv("GRADLINK_TEST_LIBRARY");
  unlink(link.c_str());
}

TEST_F(CudaDriverOnFakes, AMachineWithoutGpusIsToldFromOneWithoutADriver) {
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_GPUS", "0"}, {"CUDA_VISIBLE_DEVICES", ""}}, load),
              ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: .*CUDA driver .*libcuda.so.1 .* CUDA_ERROR_NO_DEVICE "
              "\\(.*\\).* CUDA_VISIBLE_DEVICES .*''.* nvidia-smi");
}

TEST_F(CudaDriverOnFakes, ADriverThatDoesNotStartSaysWhatToDoAboutIt) {
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "init=803"}}, load), ExitedWithCode(1),
              "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH.* restart .*LD_LIBRARY_PATH");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "init=802"}}, load), ExitedWithCode(1),
              "NVSwitches: .*802.* nvidia-fabricmanager");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "init=34"}}, load), ExitedWithCode(1),
              " stand-in .*CUDA_ERROR_STUB_LIBRARY.* LD_LIBRARY_PATH");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "init=999"}}, load), ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: .*CUDA driver .*999.* nvidia-smi");
}

TEST_F(CudaDriverOnFakes, ADriverThatCannotCompileSaysWhatItLacks) {
  const auto compile = [] { static_cast<void>(kernelModule(Device::get(0), "sumFloat32")); };
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "jit=221"}}, compile), ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: .* install libnvidia-ptxjitcompiler.so.1");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "jit=223"}}, compile), ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: .* unset CUDA_DISABLE_PTX_JIT");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "jit=218"}}, compile), ExitedWithCode(1),
              "^ERR_SYSTEM: .* gpu:0 .*CUDA_ERROR_INVALID_PTX .* ptxas fatal");
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "capability=35"}}, compile), ExitedWithCode(1),
              "^ERR_BACKEND_UNAVAILABLE: gpu:0 .*compute capability 3.5, .* 5.0");
}

TEST_F(CudaDriverOnFakes, AnOldDriverIsToldByTheFunctionItLacks) {
  EXPECT_EXIT(inProcess({{"GRADLINK_FAKE_FAULTS", "missing=cuMemAlloc_v2"}}, load),
              ExitedWithCode(1), "has no cuMemAlloc_v2");
}

TEST_F(CudaDriverOnFakes, OptionalFunctionsMayBeMissing) {
  expectFine({{"GRADLINK_FAKE_FAULTS", "missing=cuDeviceGetUuid_v2,missing=cuGraphLaunch"}}, [] {
    EXPECT_EQ(Driver::get().deviceUuid, nullptr);
    EXPECT_EQ(Driver::get().graphLaunch, nullptr);
    EXPECT_NE(Driver::get().beginCapture, nullptr);
    const auto uuid = gpuInfo(0).uuid;
    ASSERT_TRUE(uuid);
    EXPECT_EQ(uuid->rfind("GPU-", 0), 0u) << *uuid;
  });
}

TEST_F(CudaDriverDeathTest, WithoutNvmlGpusHaveNoHealthAndItIsSaidWhy) {
  expectFine({{"GRADLINK_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1"}}, [] {
    EXPECT_FALSE(gpuInfo(0).health);
    const GpuLibraries libraries = gpuLibraries();
    EXPECT_FALSE(libraries.nvmlFile);
    EXPECT_FALSE(libraries.driverRelease);
    const std::string missing = libraries.nvmlMissing.value_or("");
    EXPECT_EQ(test::lacking(missing, {"GRADLINK_NVML_LIBRARY", "'/nowhere/libnvidia-ml.so.1'"}), "")
        << missing;
    EXPECT_EQ(gpuPeer(0, 0).path, "X");
  });
}

TEST_F(CudaDriverDeathTest, ALibraryThatIsNoNvmlIsNoError) {
  expectFine({{"GRADLINK_NVML_LIBRARY", "libm.so.6"}}, [] {
    EXPECT_EQ(Nvml::get(), nullptr);
    EXPECT_NE(Nvml::missing().find("has no nvmlInit_v2"), std::string::npos) << Nvml::missing();
  });
}

TEST(CudaDriver, CheckSaysWhatWasDoneAndTheDriversNameForTheStatus) {
  EXPECT_NO_THROW(check(kSuccess, "nothing"));
  const std::string memory =
      messageOf(ErrorCode::outOfMemory, [] { check(kOutOfMemory, "taking all"); });
  EXPECT_EQ(memory.rfind("taking all: CUDA_ERROR_OUT_OF_MEMORY (", 0), 0u) << memory;
  const std::string invalid = messageOf(ErrorCode::system, [] { check(1, "calling"); });
  EXPECT_EQ(invalid.rfind("calling: CUDA_ERROR_INVALID_VALUE (", 0), 0u) << invalid;
  EXPECT_EQ(messageOf(ErrorCode::system, [] { check(123456, "calling"); }),
            "calling: CUDA error 123456");
}

}  // namespace
}  // namespace gradlink::cuda
