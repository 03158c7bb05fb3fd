#include "cuda/kernel_module.h"

#include <memory>
#include <mutex>
#include <string>

#include "core/error.h"
#include "cuda/kernels/list.h"
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {
namespace {

#define GRADLINK_NAME(name) #name,
constexpr const char* kBaseNames[] = {GRADLINK_BASE_KERNELS(GRADLINK_NAME)};
constexpr const char* kStepNames[] = {GRADLINK_STEP_KERNELS(GRADLINK_NAME)};
#undef GRADLINK_NAME

constexpr int kRegistersOfFunction = 4;
constexpr std::uint64_t kMostBlocks = 0x7fffffff;

/// The modules of one kind, by device. Never destroyed.
class Modules {
 public:
  Modules(const char* ptx, std::span<const char* const> names) : ptx_(ptx), names_(names) {}

  const KernelModule& of(Device& device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<KernelModule>& module = byOrdinal_[device.ordinal()];
    if (!module) module = std::make_unique<KernelModule>(device, ptx_, names_);
    return *module;
  }

 private:
  const char* ptx_;
  std::span<const char* const> names_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<KernelModule>> byOrdinal_;
};

/// The driver's compiler writes why it failed into a buffer that it is given.
class JitLog {
 public:
  Status load(ModuleHandle* module, const char* ptx) {
    const Driver& driver = Driver::get();
    if (driver.moduleLoadDataEx == nullptr) return driver.moduleLoadData(module, ptx);
    constexpr int kErrorLog = 5;
    constexpr int kErrorLogBytes = 6;
    int options[] = {kErrorLog, kErrorLogBytes};
    // A number is given in the place of a pointer.
    void* values[] = {text_, reinterpret_cast<void*>(sizeof(text_) - 1)};
    return driver.moduleLoadDataEx(module, ptx, 2, options, values);
  }
  std::string text() const { return text_[0] == '\0' ? "" : std::string("; it says: ") + text_; }

 private:
  char text_[2048] = {};
};

ModuleHandle load(Device& device, const char* ptx) {
  ModuleHandle module = nullptr;
  JitLog log;
  const Status status = log.load(&module, ptx);
  const int version = Driver::get().version;
  const std::string driver = "the driver of " + device.label() + " (CUDA " +
                             std::to_string(version / 1000) + "." +
                             std::to_string(version % 1000 / 10) + ")";
  switch (status) {
    case kUnsupportedPtx:
      throw Error(ErrorCode::backendUnavailable,
                  driver + " is too old for gradlink's kernels: it must take PTX 6.3 (CUDA 10.0)");
    case kNoJitCompiler:
      throw Error(ErrorCode::backendUnavailable,
                  driver +
                      " lacks its compiler for gradlink's kernels: install "
                      "libnvidia-ptxjitcompiler.so.1, of the driver's very version");
    case kJitDisabled:
      throw Error(ErrorCode::backendUnavailable,
                  driver + " may not compile gradlink's kernels: unset CUDA_DISABLE_PTX_JIT");
    default:
      break;
  }
  try {
    check(status, "cannot load gradlink's kernels on " + device.label());
  } catch (const Error& error) {
    throw Error(error.code, error.what() + log.text());
  }
  return module;
}

}  // namespace

KernelModule::KernelModule(Device& device, const char* ptx, std::span<const char* const> names)
    : device_(device) {
  const Driver& driver = Driver::get();
  device.makeCurrent();
  const ModuleHandle module = load(device, ptx);
  for (const char* name : names) {
    FunctionHandle& function = functions_[name];
    check(driver.moduleGetFunction(&function, module, name),
          "cannot find the kernel " + std::string(name) + " on " + device.label());
    // A driver that loads lazily has only looked it up so far.
    if (driver.functionAttribute != nullptr) {
      int registers = 0;
      check(driver.functionAttribute(&registers, kRegistersOfFunction, function),
            "cannot load the kernel " + std::string(name) + " on " + device.label());
    }
  }
}

void KernelModule::launchWith(Stream& stream, std::string_view kernel, std::uint64_t blocks,
                              unsigned threads, void** arguments) const {
  if (blocks == 0) return;
  if (blocks > kMostBlocks) {
    throw Error(ErrorCode::invalidArgument,
                "too many elements for one launch on " + device_.label());
  }
  device_.makeCurrent();
  const Status status =
      Driver::get().launchKernel(functions_.at(kernel), static_cast<unsigned>(blocks), 1, 1,
                                 threads, 1, 1, 0, stream.handle(), arguments, nullptr);
  if (status != kSuccess) {
    check(status, "launching " + std::string(kernel) + " on " + device_.label() + " failed");
  }
}

const KernelModule& baseKernels(Device& device) {
  static Modules& modules = *new Modules(kKernelsPtx, kBaseNames);
  return modules.of(device);
}

const KernelModule& stepKernels(Device& device) {
  static Modules& modules = *new Modules(kStepKernelsPtx, kStepNames);
  return modules.of(device);
}

}  // namespace gradlink::cuda
