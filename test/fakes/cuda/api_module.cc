// Modules and launches. Of code only the names of kernels are read. What kernels compute comes from
// the host's build of the same source (kernel_table.h), or from the module's text (ptx_kernels.h).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/capture.h"
#include "cuda/control.h"
#include "cuda/cubin.h"
#include "cuda/exports.h"
#include "cuda/faults.h"
#include "cuda/kernel_table.h"
#include "cuda/ptx_kernels.h"
#include "support/machine.h"

namespace gradlink::fake {

struct Function {
  Context* context = nullptr;
  const Kernel* kernel = nullptr;
  std::shared_ptr<const ptx::Program> program;
  /// As with lazy loading; without cuFuncLoad, as of drivers before that.
  std::atomic<bool> loaded{hasFault("missing", "cuFuncLoad")};

  /// Waits for what runs, as loading a module does.
  void load() {
    if (!loaded.exchange(true)) context->synchronize();
  }
};

struct Module {
  Context* context = nullptr;
  std::set<std::string, std::less<>> entries;
  ptx::Programs programs;
  std::mutex mutex;
  std::vector<FunctionHandle> functions;
};

namespace {

constexpr unsigned kMostThreads = 1024;
std::atomic<int> latestBlocks{0};

/// The word after each ".entry", up to its parameters.
std::set<std::string, std::less<>> entriesOf(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ";
  std::set<std::string, std::less<>> entries;
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    entries.emplace(ptx.substr(at, ptx.find_first_of("( \n\r\t", at) - at));
  }
  return entries;
}

/// A GPU runs what was made for its major version and a minor one that is not above its own.
Status takes(const Cubin& cubin) {
  if (const auto status = faultNumber("cubin")) return static_cast<Status>(*status);
  const int own = Machine::computeCapability();
  // Whose kernels shall be those of the PTX cannot run machine code.
  if (runsPtx()) return kNoBinaryForGpu;
  if (cubin.abi >= kAbiOfCuda13 && Machine::driverVersion() < 13000) return kNoBinaryForGpu;
  const bool runs = cubin.architecture / 10 == own / 10 && cubin.architecture <= own;
  return runs ? kOk : kNoBinaryForGpu;
}

/// With "jit-meets=N" a compilation ends when N are under way in the process: a program that
/// compiles for one GPU after the other never comes that far, and is told so.
Status meetOthers() {
  const auto wanted = faultNumber("jit-meets");
  if (!wanted) return kOk;
  constexpr std::chrono::seconds kPatience(20);
  static std::mutex mutex;
  static std::condition_variable changed;
  static int underWay = 0;
  std::unique_lock lock(mutex);
  ++underWay;
  changed.notify_all();
  const bool met = changed.wait_for(lock, kPatience, [&] { return underWay >= *wanted; });
  return met ? kOk : kLaunchFailed;
}

Status compiles(std::string_view ptx) {
  // The text is PTX 6.3, of CUDA 10.0.
  if (Machine::driverVersion() < 10000) return kUnsupportedPtx;
  if (const auto status = faultNumber("jit")) return static_cast<Status>(*status);
  if (ptx.find(".version ") == ptx.npos) return kInvalidImage;
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t target = ptx.find(kTarget);
  if (target == ptx.npos) return kInvalidPtx;
  // Text for newer GPUs than this one.
  if (std::atoi(ptx.data() + target + kTarget.size()) > Machine::computeCapability()) {
    return kInvalidPtx;
  }
  return meetOthers();
}

}  // namespace

static Status loadModule(Context& context, ModuleHandle* handle, const void* image) {
  if (const Status status = checkUnsafeCall()) return status;
  const std::optional<Cubin> cubin = readCubin(image);
  const std::string_view ptx = cubin ? "" : static_cast<const char*>(image);
  if (const Status status = cubin ? takes(*cubin) : compiles(ptx)) return status;
  // Loading waits for the device: a program that loads while a kernel spins stands still on a real
  // one, and shall here.
  context.synchronize();
  auto module = std::make_shared<Module>();
  module->context = &context;
  module->entries = cubin ? cubin->entries : entriesOf(ptx);
  if (runsPtx()) {
    try {
      module->programs = ptx::parse(ptx);
    } catch (const ptx::BadPtx& bad) {
      std::fprintf(stderr, "fake CUDA: %s\n", bad.what());
      return kInvalidPtx;
    }
  }
  *handle = World::get().modules.add(std::move(module));
  return kOk;
}

FAKE_IN_CONTEXT(cuModuleLoadData, (ModuleHandle * handle, const void* image)) {
  return loadModule(context, handle, image);
}

FAKE_IN_CONTEXT(cuModuleLoadDataEx, (ModuleHandle * handle, const void* image, unsigned count,
                                     int* options, void** values)) {
  constexpr int kErrorLog = 5;
  constexpr int kErrorLogBytes = 6;
  const Status status = loadModule(context, handle, image);
  char* log = nullptr;
  std::size_t room = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == kErrorLog) log = static_cast<char*>(values[i]);
    if (options[i] == kErrorLogBytes) room = reinterpret_cast<std::size_t>(values[i]);
  }
  if (status != kOk && log != nullptr) std::snprintf(log, room, "ptxas fatal : asked to fail");
  return status;
}

FAKE_DRIVER(cuModuleGetFunction,
            (FunctionHandle * handle, ModuleHandle moduleHandle, const char* name)) {
  const std::shared_ptr<Module> module = World::get().modules.find(moduleHandle);
  if (!module) return kInvalidHandle;
  const Kernel* const kernel = module->entries.contains(name) ? findKernel(name) : nullptr;
  if (!kernel) return kNotFound;
  std::shared_ptr<const ptx::Program> program;
  if (const auto found = module->programs.find(name); found != module->programs.end()) {
    program = {module, &found->second};
  }
  const auto function = std::make_shared<Function>();
  function->context = module->context;
  function->kernel = kernel;
  function->program = std::move(program);
  *handle = World::get().functions.add(function);
  const std::lock_guard lock(module->mutex);
  module->functions.push_back(*handle);
  return kOk;
}

FAKE_DRIVER(cuFuncLoad, (FunctionHandle handle)) {
  const std::shared_ptr<Function> function = World::get().functions.find(handle);
  if (!function) return kInvalidHandle;
  function->load();
  return kOk;
}

FAKE_DRIVER(cuModuleUnload, (ModuleHandle handle)) {
  const std::shared_ptr<Module> module = World::get().modules.take(handle);
  if (!module) return kInvalidHandle;
  module->context->synchronize();
  for (const FunctionHandle function : module->functions) World::get().functions.take(function);
  return kOk;
}

FAKE_IN_CONTEXT(cuLaunchKernel,
                (FunctionHandle functionHandle, unsigned gridX, unsigned gridY, unsigned gridZ,
                 unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,
                 StreamHandle streamHandle, void** parameters, void** extra)) {
  const std::shared_ptr<Function> function = World::get().functions.find(functionHandle);
  const std::shared_ptr<Stream> stream = streamOf(streamHandle);
  if (!function || !stream) return kInvalidHandle;
  if (function->context != &context || &stream->context() != &context) return kInvalidHandle;
  if (gridX == 0 || blockX == 0 || blockX > kMostThreads || extra || !parameters) {
    return kInvalidValue;
  }
  // Which our kernels do not use.
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || shared != 0) return kNotSupported;
  function->load();
  const Grid grid{.blocks = gridX, .threads = blockX};
  latestBlocks = static_cast<int>(gridX);
  Work work =
      function->kernel->bind(grid, parameters, bindPtx(function->program, grid, parameters));
  switch (nextFault(Counted::launches)) {
    case Ordinal::none:
    case Ordinal::spoils:
      break;
    case Ordinal::fails:
      work = [](Execution&) { return kLaunchFailed; };
      break;
    case Ordinal::hangs:
      work = [](Execution&) -> Status {
        Mark().wait();
        return kOk;
      };
      break;
  }
  const Status status = submit(*stream, std::move(work));
  static const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (status == kOk && blocking != nullptr && std::string_view(blocking) == "1") {
    stream->end()->wait();
  }
  return status;
}

}  // namespace gradlink::fake

extern "C" __attribute__((visibility("default"))) int gradlinkFakeBlocks() {
  return gradlink::fake::latestBlocks;
}
