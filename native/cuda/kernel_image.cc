#include "cuda/kernel_image.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "core/environment.h"
#include "core/error.h"
#include "core/uncompress.h"
#include "cuda/device.h"
#include "cuda/kernels_ptx.h"

namespace gradlink::cuda {
namespace {

constexpr const char* kCompiled = "compiled from PTX";

/// Empty: none.
std::filesystem::path cubinFolder() {
  const char* const named = codeFromEnvironment("GRADLINK_CUBINS");
  if (named != nullptr) return named;
  Dl_info info{};
  // Any address in this library.
  if (dladdr(kernelCodes().data(), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path() / "cubins";
}

/// Empty if the file is unreadable or damaged.
std::optional<std::vector<char>> readCubin(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> packed{std::istreambuf_iterator<char>(file), {}};
  return uncompress(packed, kMost);
}

/// The buffer for error messages of the driver's compiler.
class JitLog {
 public:
  Status load(ModuleHandle* module, const char* ptx) {
    const Driver& driver = Driver::get();
    if (driver.moduleLoadDataEx == nullptr) return driver.moduleLoadData(module, ptx);
    constexpr int kErrorLog = 5;
    constexpr int kErrorLogBytes = 6;
    int options[] = {kErrorLog, kErrorLogBytes};
    // The driver takes this number in place of a pointer.
    void* values[] = {text_, reinterpret_cast<void*>(sizeof(text_) - 1)};
    return driver.moduleLoadDataEx(module, ptx, 2, options, values);
  }
  std::string text() const { return text_[0] == '\0' ? "" : std::string("; it says: ") + text_; }

 private:
  char text_[2048] = {};
};

std::string cudaText(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Why no driver, or not this one, compiles the kernels for the device; empty if it can.
std::string obstacleTo(const Device& device) {
  // The target and the version of the PTX (scripts/ptx.mjs).
  constexpr int kOldestMajor = 5;
  constexpr int kOldestDriver = 10000;
  if (device.capabilityMajor() < kOldestMajor) {
    return "compute capability " + device.capability() + ", gradlink's kernels need " +
           std::to_string(kOldestMajor) + ".0";
  }
  const int version = Driver::get().version;
  if (version >= kOldestDriver) return "";
  return "the driver's " + cudaText(version) + ", gradlink's kernels need " +
         cudaText(kOldestDriver);
}

ModuleHandle compile(const Device& device, const PackedPtx& packed) {
  const std::vector<char> ptx = textOf(packed);
  ModuleHandle module = nullptr;
  JitLog log;
  const Status status = log.load(&module, ptx.data());
  const std::string driver =
      "the driver of " + device.label() + " (" + cudaText(Driver::get().version) + ")";
  const std::string obstacle = obstacleTo(device);
  switch (status) {
    case kUnsupportedPtx:
      throw Error(ErrorCode::backendUnavailable,
                  driver + " is too old for gradlink's kernels: it must take PTX 6.3 (CUDA 10.0)");
    case kNoJitCompiler:
      throw Error(ErrorCode::backendUnavailable,
                  driver +
                      " lacks its compiler for gradlink's kernels: install "
                      "libnvidia-ptxjitcompiler.so.1, of the driver's exact version");
    case kJitDisabled:
      throw Error(ErrorCode::backendUnavailable,
                  driver + " may not compile gradlink's kernels: unset CUDA_DISABLE_PTX_JIT");
    case kNoBinaryForGpu:
    case kInvalidPtx:
      if (obstacle.empty()) break;
      throw Error(ErrorCode::backendUnavailable, device.label() + ": " + obstacle);
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

std::vector<char> textOf(const PackedPtx& packed) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  std::optional<std::vector<char>> text =
      uncompress({reinterpret_cast<const char*>(packed.data), packed.bytes}, kMost);
  if (text) return std::move(*text);
  throw Error(ErrorCode::backendUnavailable,
              "gradlink's kernels are compressed, and neither this Node nor libz.so.1 unpacks "
              "them: install zlib (Debian: zlib1g)");
}

std::optional<Cubin> cubinFor(const KernelCode& code, int major, int minor) {
  const std::filesystem::path folder = cubinFolder();
  if (folder.empty()) return std::nullopt;
  for (int older = minor; older >= 0; --older) {
    const std::string architecture = "sm_" + std::to_string(major) + std::to_string(older);
    const std::filesystem::path file =
        folder / (std::string(code.source) + "-" + code.digest + "." + architecture + ".cubin.z");
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none)) return Cubin{file.string(), architecture};
  }
  return std::nullopt;
}

std::string imageFor(const KernelCode& code, const Device& device) {
  const std::optional<Cubin> cubin =
      cubinFor(code, device.capabilityMajor(), device.capabilityMinor());
  if (cubin) return "cubin " + cubin->architecture;
  const std::string obstacle = obstacleTo(device);
  return obstacle.empty() ? kCompiled : "none: " + obstacle;
}

namespace {

/// A cubin loaded on a device. It has the kernels of all modules of its source.
struct LoadedCubin {
  std::mutex mutex;
  ModuleHandle module = nullptr;
  Status status = kNotReady;
};

/// Tried once. A lock each: loading waits for kernels, which may wait for another device's load.
std::pair<ModuleHandle, Status> loadCubin(const Device& device, const Cubin& cubin) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<std::pair<int, std::string>, LoadedCubin>;
  std::unique_lock<std::mutex> lock(mutex);
  LoadedCubin& loaded = all[{device.ordinal(), cubin.file}];
  lock.unlock();
  const std::lock_guard<std::mutex> own(loaded.mutex);
  if (loaded.status == kNotReady) {
    const std::optional<std::vector<char>> image = readCubin(cubin.file);
    loaded.status =
        image ? Driver::get().moduleLoadData(&loaded.module, image->data()) : kInvalidImage;
  }
  return {loaded.module, loaded.status};
}

}  // namespace

LoadedImage loadImage(const KernelCode& code, const Device& device) {
  const std::optional<Cubin> cubin =
      cubinFor(code, device.capabilityMajor(), device.capabilityMinor());
  if (!cubin) return {compile(device, code.ptx), kCompiled};
  // A driver too old for the cubin's toolkit has several error codes. Other errors hit PTX, too.
  const auto [module, status] = loadCubin(device, *cubin);
  if (status == kSuccess) return {module, "cubin " + cubin->architecture};
  return {compile(device, code.ptx), std::string(kCompiled) + ": the driver does not take cubin " +
                                         cubin->architecture + " (" + statusText(status) + ")"};
}

}  // namespace gradlink::cuda
