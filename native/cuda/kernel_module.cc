#include "cuda/kernel_module.h"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "cuda/kernel_image.h"
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

constexpr KernelCode kBase = {"kernels", &kKernelsPtx, kKernelsDigest, kBaseNames};
constexpr KernelCode kSteps = {"step_kernels", &kStepKernelsPtx, kStepKernelsDigest, kStepNames};

/// The modules of one kind, by device. Never destroyed. A lock for each device: loading takes
/// seconds where the driver compiles, and one GPU's compiler does not wait for another's.
class Modules {
 public:
  explicit Modules(const KernelCode& code) : code_(code) {}

  const KernelModule& of(Device& device) {
    Slot& slot = slotOf(device);
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (!slot.module) {
      slot.module = std::make_unique<KernelModule>(device, code_);
      slot.loaded = slot.module.get();
    }
    return *slot.module;
  }

  /// Does not wait for a driver that is compiling.
  std::string imageOf(const Device& device) {
    const KernelModule* const module = slotOf(device).loaded;
    return module != nullptr ? module->image() : imageFor(code_, device);
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<KernelModule> module;
    std::atomic<const KernelModule*> loaded = nullptr;
  };

  Slot& slotOf(const Device& device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return byOrdinal_[device.ordinal()];
  }

  const KernelCode& code_;
  std::mutex mutex_;
  std::map<int, Slot> byOrdinal_;
};

Modules& baseModules() {
  static Modules& modules = *new Modules(kBase);
  return modules;
}

Modules& stepModules() {
  static Modules& modules = *new Modules(kSteps);
  return modules;
}

}  // namespace

KernelModule::KernelModule(Device& device, const KernelCode& code) : device_(device) {
  const Driver& driver = Driver::get();
  device.makeCurrent();
  const LoadedImage loaded = loadImage(code, device);
  image_ = loaded.kind;
  for (const char* name : code.kernels) {
    FunctionHandle& function = functions_[name];
    check(driver.moduleGetFunction(&function, loaded.module, name),
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

const KernelModule& baseKernels(Device& device) { return baseModules().of(device); }
const KernelModule& stepKernels(Device& device) { return stepModules().of(device); }

std::string kernelsOf(const Device& device) { return baseModules().imageOf(device); }

void loadKernels(std::span<Device* const> devices, bool steps) {
  std::vector<std::future<void>> loads;
  for (Device* const device : devices) {
    loads.push_back(std::async(std::launch::async, [device, steps] {
      baseKernels(*device);
      if (steps) stepKernels(*device);
    }));
  }
  for (std::future<void>& load : loads) load.wait();
  for (std::future<void>& load : loads) load.get();
}

}  // namespace gradlink::cuda
