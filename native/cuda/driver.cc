#include "cuda/driver.h"

#include <optional>
#include <vector>

#include "core/error.h"
#include "cuda/shared_library.h"

namespace gradlink::cuda {
namespace {

constexpr Status kStubLibrary = 34;
constexpr Status kSystemNotReady = 802;
constexpr Status kSystemDriverMismatch = 803;

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string describe(const Driver& driver, Status status) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.errorName(status, &name) != kSuccess || name == nullptr) {
    return "CUDA error " + std::to_string(status);
  }
  if (driver.errorString(status, &text) != kSuccess || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

/// Explains why a driver does not start, with the remedy.
std::string startFailure(const Driver& driver, Status status) {
  const std::string said = describe(driver, status);
  switch (status) {
    case kNoDevice:
      return "the CUDA driver " + driver.file + " sees no GPU: " + said + "; " +
             variableText("CUDA_VISIBLE_DEVICES") +
             ": run nvidia-smi to see what the machine has, and let this process or its container "
             "see a GPU";
    case kStubLibrary:
      return "the CUDA driver " + driver.file + " is the toolkit's stand-in for linking: " + said +
             ": take its folder out of LD_LIBRARY_PATH, or install the NVIDIA driver";
    case kSystemNotReady:
      return "the CUDA driver " + driver.file + " waits for the machine's NVSwitches: " + said +
             ": start the service nvidia-fabricmanager, of the driver's exact version (systemctl "
             "status nvidia-fabricmanager), on the host where this is a container";
    case kSystemDriverMismatch:
      return "the CUDA driver " + driver.file +
             " is of another version than the kernel's module: " + said +
             ": restart the machine after a driver update, or take an older libcuda.so.1 out of "
             "LD_LIBRARY_PATH";
    default:
      return "the CUDA driver " + driver.file + " does not start: " + said +
             ": run nvidia-smi to see whether the driver works at all";
  }
}

void load(Driver& driver) {
  const SharedLibrary library({
      .what = "the CUDA driver",
      .file = "libcuda.so.1",
      .variable = "GRADLINK_CUDA_LIBRARY",
      .folders = {"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"},
      .remedy = "install the NVIDIA driver",
  });
  driver.file = library.file();
  std::vector<std::string> missing;
#define GRADLINK_BIND(symbol, member, arguments) \
  library.bind(driver.member, #symbol);          \
  if (driver.member == nullptr) missing.emplace_back(#symbol);
  GRADLINK_CUDA_REQUIRED(GRADLINK_BIND)
#undef GRADLINK_BIND
#define GRADLINK_BIND(symbol, member, arguments) library.bind(driver.member, #symbol);
  GRADLINK_CUDA_OPTIONAL(GRADLINK_BIND)
#undef GRADLINK_BIND
  if (!missing.empty()) {
    constexpr std::size_t kNamed = 3;
    const std::size_t unnamed = missing.size() > kNamed + 1 ? missing.size() - kNamed : 0;
    if (unnamed > 0) {
      missing.resize(kNamed);
      missing.push_back(std::to_string(unnamed) + " more functions");
    }
    throw Error(
        ErrorCode::backendUnavailable,
        "the CUDA driver " + driver.file + " has no " + listed(missing) +
            ": it is too old or not a CUDA driver; gradlink needs one of CUDA 11.0 (release "
            "450) or newer");
  }
  Status status = driver.init(0);
  int devices = 0;
  if (status == kSuccess) status = driver.deviceCount(&devices);
  if (status == kSuccess && devices == 0) status = kNoDevice;
  if (status == kSuccess) status = driver.driverVersion(&driver.version);
  if (status != kSuccess) {
    throw Error(ErrorCode::backendUnavailable, startFailure(driver, status));
  }
}

/// The driver, or the reason why it cannot be loaded.
struct Loaded {
  Driver driver;
  std::optional<Error> failure;

  Loaded() {
    try {
      load(driver);
    } catch (const Error& error) {
      failure = error;
    }
  }
};

}  // namespace

const Driver& Driver::get() {
  // Never destroyed: threads may still call when the process ends.
  static const Loaded& loaded = *new Loaded;
  if (loaded.failure) throw *loaded.failure;
  return loaded.driver;
}

std::string statusText(Status status) { return describe(Driver::get(), status); }

void check(Status status, const std::string& doing) {
  if (status == kSuccess) return;
  const std::string message = doing + ": " + describe(Driver::get(), status);
  if (status == kOutOfMemory) throw Error(ErrorCode::outOfMemory, message).stillUsable();
  throw Error(ErrorCode::system, message);
}

}  // namespace gradlink::cuda
