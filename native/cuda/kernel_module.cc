#include "cuda/kernel_module.h"

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "cuda/kernel_image.h"
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {
namespace {

constexpr std::uint64_t kMostBlocks = 0x7fffffff;

/// Throws std::out_of_range for an unknown name.
const KernelCode& codeOf(std::string_view module) {
  static const auto& byName = *new std::map<std::string_view, const KernelCode*>([] {
    std::map<std::string_view, const KernelCode*> codes;
    for (const KernelCode& code : kernelCodes()) codes.emplace(code.name, &code);
    return codes;
  }());
  return *byName.at(module);
}

/// By module and device. Never destroyed. A lock each: one GPU's compilation must not delay others.
class Modules {
 public:
  static Modules& get() {
    static Modules& all = *new Modules;
    return all;
  }

  const KernelModule& of(Device& device, const KernelCode& code) {
    Slot& slot = slotOf(device, code);
    if (const KernelModule* const module = slot.loaded) return *module;
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (!slot.module) {
      slot.module = std::make_unique<KernelModule>(device, code);
      slot.loaded = slot.module.get();
    }
    return *slot.module;
  }

  bool isLoaded(const Device& device, const KernelCode& code) {
    return slotOf(device, code).loaded != nullptr;
  }

  /// Does not wait for a driver that is compiling.
  std::string imageOf(const Device& device, const KernelCode& code) {
    const KernelModule* const module = slotOf(device, code).loaded;
    return module != nullptr ? module->image() : imageFor(code, device);
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<KernelModule> module;
    std::atomic<const KernelModule*> loaded = nullptr;
  };

  Slot& slotOf(const Device& device, const KernelCode& code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return slots_[{&code, device.ordinal()}];
  }

  std::mutex mutex_;
  std::map<std::pair<const KernelCode*, int>, Slot> slots_;
};

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
    // Newer drivers with lazy loading have only looked it up so far.
    if (driver.functionLoad == nullptr) continue;
    check(driver.functionLoad(function),
          "cannot load the kernel " + std::string(name) + " on " + device.label());
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

const KernelModule& kernelModule(Device& device, std::string_view module) {
  return Modules::get().of(device, codeOf(module));
}

std::string kernelsOf(const Device& device) {
  return Modules::get().imageOf(device, codeOf("sumFloat32"));
}

void loadKernels(std::span<Device* const> devices,
                 std::initializer_list<std::string_view> modules) {
  std::vector<std::future<void>> loads;
  for (Device* const device : devices) {
    for (const std::string_view module : modules) {
      if (Modules::get().isLoaded(*device, codeOf(module))) continue;
      loads.push_back(
          std::async(std::launch::async, [device, module] { kernelModule(*device, module); }));
    }
  }
  for (std::future<void>& load : loads) load.wait();
  for (std::future<void>& load : loads) load.get();
}

}  // namespace gradlink::cuda
