// Memory and kernels of the fake driver: what a GPU would not reach is refused, and what is left is
// told.
#include <sstream>

#include "cuda/kernels_ptx.h"
#include "test/fake/support.h"

namespace gradlink::cuda {
namespace {

constexpr Status kInvalidValue = 1;
constexpr Status kIllegalAddress = 700;

TEST(FakeMemory, BelongsToItsDevice) {
  const auto ownerOf = symbolOf<int(const void*)>("gradlinkFakeOwner");
  const RawMemory host(-1, 8);
  const int last = Device::count() - 1;
  const RawMemory device(last, 8);
  const int local = 0;
  EXPECT_EQ(ownerOf(host.bytes() + 7), -1);
  EXPECT_EQ(ownerOf(device.bytes() + 7), last);
  EXPECT_EQ(ownerOf(device.bytes() + 8), -2);
  EXPECT_EQ(ownerOf(&local), -2);
}

TEST(FakeMemory, IsNotZeroedOnDevices) {
  const RawMemory device(0, 8);
  EXPECT_NE(device.bytes()[0], 0);
}

TEST(FakeMemory, CopiesPastAnEndOrToFreedMemoryAreRefused) {
  RawStream stream;
  const RawMemory host(-1, 64);
  Address freed = 0;
  use(0);
  ASSERT_EQ(driver().memAlloc(&freed, 64), kSuccess);
  ASSERT_EQ(driver().memFree(freed), kSuccess);
  EXPECT_EQ(driver().copyAsync(freed, host.address(), 64, stream.handle()), kInvalidValue);
  EXPECT_EQ(driver().copyAsync(host.address() + 1, host.address(), 64, stream.handle()),
            kInvalidValue);
  EXPECT_EQ(driver().memFree(freed), kInvalidValue);
  EXPECT_EQ(driver().memFree(host.address()), kInvalidValue);
}

/// A kernel of the embedded module, loaded on a device.
class RawKernel {
 public:
  RawKernel(int device, const char* name) : device_(device) {
    use(device);
    for (const KernelCode& code : kernelCodes()) {
      const auto has = [name](const char* kernel) { return std::string_view(kernel) == name; };
      if (std::none_of(code.kernels.begin(), code.kernels.end(), has)) continue;
      EXPECT_EQ(driver().moduleLoadData(&module_, textOf(code.ptx).data()), kSuccess);
    }
    EXPECT_EQ(driver().moduleGetFunction(&function_, module_, name), kSuccess);
    EXPECT_EQ(driver().functionLoad(function_), kSuccess);
  }
  ~RawKernel() { driver().moduleUnload(module_); }
  RawKernel(const RawKernel&) = delete;
  RawKernel& operator=(const RawKernel&) = delete;
  template <class... Arguments>
  Status launch(const RawStream& stream, unsigned blocks, Arguments... arguments) const {
    void* parameters[] = {&arguments...};
    use(device_);
    return driver().launchKernel(function_, blocks, 1, 1, 256, 1, 1, 0, stream.handle(), parameters,
                                 nullptr);
  }

 private:
  int device_;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr;
};

/// The names of the kernels of a module's text.
std::vector<std::string> entriesOf(const std::string& ptx) {
  std::vector<std::string> names;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    constexpr const char kEntry[] = ".visible .entry ";
    if (line.rfind(kEntry, 0) != 0) continue;
    const std::size_t from = sizeof kEntry - 1;
    names.push_back(line.substr(from, line.find('(') - from));
  }
  return names;
}

TEST(FakeKernels, EveryKernelOfTheEmbeddedModulesIsThere) {
  for (const KernelCode& code : kernelCodes()) {
    const std::vector<char> ptx = textOf(code.ptx);
    use(0);
    ModuleHandle module = nullptr;
    ASSERT_EQ(driver().moduleLoadData(&module, ptx.data()), kSuccess);
    const std::vector<std::string> names = entriesOf(ptx.data());
    EXPECT_EQ(names, std::vector<std::string>(code.kernels.begin(), code.kernels.end()));
    for (const std::string& name : names) {
      FunctionHandle function = nullptr;
      EXPECT_EQ(driver().moduleGetFunction(&function, module, name.c_str()), kSuccess) << name;
    }
    FunctionHandle function = nullptr;
    EXPECT_EQ(driver().moduleGetFunction(&function, module, "gradlinkNothing"), 500);
    EXPECT_EQ(driver().moduleUnload(module), kSuccess);
  }
}

TEST(FakeKernels, ReadTheirArgumentsAtTheLaunch) {
  RawStream stream;
  const RawMemory from(0, 64);
  const RawMemory to(0, 64);
  const RawKernel kernel(0, "gradlinkCopy");
  for (int i = 0; i < 64; ++i) from.bytes()[i] = static_cast<unsigned char>(i);
  const auto release = stream.hold();
  ASSERT_EQ(kernel.launch(stream, 1, to.address(), from.address(), std::uint64_t{3}), kSuccess);
  release();
  ASSERT_EQ(stream.synchronize(), kSuccess);
  for (int i = 0; i < 48; ++i) ASSERT_EQ(to.bytes()[i], i);
  EXPECT_NE(to.bytes()[48], 48);
}

using FakeReachDeathTest = FreshProcesses;

Status copyFromTheOtherDevice(bool enable) {
  RawStream stream(0);
  const RawMemory from(1, 64);
  const RawMemory to(0, 64);
  use(0);
  if (enable) {
    EXPECT_EQ(driver().enablePeerAccess(contextOf(1), 0), kSuccess);
  }
  const RawKernel kernel(0, "gradlinkCopy");
  EXPECT_EQ(kernel.launch(stream, 1, to.address(), from.address(), std::uint64_t{4}), kSuccess);
  return stream.synchronize();
}

TEST_F(FakeReachDeathTest, KernelsReachPeersOnlyWithAccess) {
  const std::vector<std::pair<const char*, std::string>> two{{"GRADLINK_FAKE_GPUS", "2"}};
  expectFine(two, [] { EXPECT_EQ(copyFromTheOtherDevice(true), kSuccess); });
  expectFine(two, [] { EXPECT_EQ(copyFromTheOtherDevice(false), kIllegalAddress); });
}

TEST_F(FakeReachDeathTest, KernelsDoNotReachPageableMemoryNorPastAnEnd) {
  const auto run = [](bool pageable) {
    static unsigned char host[64];
    RawStream stream;
    const RawMemory from(0, 64);
    const RawMemory to(0, 63);
    const RawKernel kernel(0, "gradlinkCopy");
    const Address target = pageable ? addressOf(host) : to.address();
    EXPECT_EQ(kernel.launch(stream, 1, target, from.address(), std::uint64_t{4}), kSuccess);
    EXPECT_EQ(stream.synchronize(), kIllegalAddress);
  };
  expectFine({}, [&] { run(true); });
  expectFine({}, [&] { run(false); });
}

using FakeLeaksDeathTest = FreshProcesses;

/// Whether a line of the report has all of these.
bool tells(const std::string& report, std::initializer_list<std::string_view> tokens) {
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (test::lacking(line, tokens).empty()) return true;
  }
  return false;
}

TEST_F(FakeLeaksDeathTest, EachKindIsNamed) {
  const std::string report = leftBy({}, [] {
    use(0);
    StreamHandle stream = nullptr;
    EventHandle event = nullptr;
    Address device = 0;
    void* host = nullptr;
    EXPECT_EQ(driver().streamCreate(&stream, 1), kSuccess);
    EXPECT_EQ(driver().eventCreate(&event, 0), kSuccess);
    EXPECT_EQ(driver().memAlloc(&device, 64), kSuccess);
    EXPECT_EQ(driver().hostAlloc(&host, 32, 0), kSuccess);
    reinterpret_cast<char*>(device)[64] = 1;
  });
  EXPECT_NE(report.find("1 streams"), report.npos) << report;
  EXPECT_NE(report.find("1 events"), report.npos) << report;
  EXPECT_TRUE(tells(report, {"not freed", "gpu:0, 64 bytes"})) << report;
  EXPECT_TRUE(tells(report, {"not freed", "page-locked", "32 bytes"})) << report;
  EXPECT_TRUE(tells(report, {"written past", "gpu:0"})) << report;
}

TEST_F(FakeLeaksDeathTest, AWritePastTheEndIsToldAfterTheMemoryIsFreed) {
  const std::string report = leftBy({}, [] {
    const RawMemory host(-1, 30);
    host.bytes()[30] = 0;
  });
  EXPECT_TRUE(tells(report, {"written past", "page-locked", "30 bytes"})) << report;
}

}  // namespace
}  // namespace gradlink::cuda
