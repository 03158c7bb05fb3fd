#include "cuda/nvml.h"

#include <memory>

#include "core/error.h"
#include "cuda/shared_library.h"

namespace gradlink::cuda {

/// NVML, or the reason why it is missing.
struct Nvml::Found {
  std::unique_ptr<const Nvml> nvml;
  std::string missing;

  Found() {
    try {
      nvml.reset(new Nvml);
    } catch (const Error& error) {
      missing = error.what();
    }
  }
};

Nvml::Nvml() {
  const SharedLibrary library({
      .what = "NVML",
      .file = "libnvidia-ml.so.1",
      .variable = "GRADLINK_NVML_LIBRARY",
      .folders = {"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"},
      .remedy =
          "install all of the NVIDIA driver, or run the container with its utility capability",
  });
  file_ = library.file();
#define GRADLINK_BIND(symbol, member, arguments) library.bind(table_.member, #symbol);
  GRADLINK_NVML_FUNCTIONS(GRADLINK_BIND)
#undef GRADLINK_BIND
  if (table_.init == nullptr) {
    throw Error(ErrorCode::backendUnavailable,
                "NVML is not available: " + file_ + " has no nvmlInit_v2");
  }
  const NvmlStatus status = table_.init();
  if (status != kNvmlSuccess) {
    throw Error(ErrorCode::backendUnavailable,
                "NVML is not available: " + file_ + " does not start (error " +
                    std::to_string(status) + "): run nvidia-smi to see why");
  }
}

const Nvml::Found& Nvml::found() {
  // Never destroyed: threads may still call when the process ends.
  static const Found& found = *new Found;
  return found;
}

const Nvml* Nvml::get() { return found().nvml.get(); }

const std::string& Nvml::missing() { return found().missing; }

std::optional<NvmlDevice> Nvml::device(const std::string& pciBusId) const {
  NvmlDevice device = nullptr;
  if (!call(&NvmlTable::byPciBusId, pciBusId.c_str(), &device)) return std::nullopt;
  return device;
}

}  // namespace gradlink::cuda
