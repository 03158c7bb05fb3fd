#include <string>

#include "cuda/info.h"
#include "cuda/nvml.h"

namespace gradlink::cuda {
namespace {

template <class... Parameters>
std::optional<std::string> textOf(const Nvml& nvml, NvmlStatus (*NvmlTable::*member)(Parameters...),
                                  NvmlDevice device) {
  char text[128] = {};
  if (!nvml.call(member, device, text, unsigned{sizeof(text) - 1})) return std::nullopt;
  return text;
}

}  // namespace

std::vector<InstalledGpu> installedGpus() {
  std::vector<InstalledGpu> all;
  const Nvml* const nvml = Nvml::get();
  unsigned count = 0;
  if (nvml == nullptr || !nvml->call(&NvmlTable::count, &count)) return all;
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    NvmlPci pci{};
    // GPUs of other users have no handle.
    if (!nvml->call(&NvmlTable::byIndex, index, &device)) continue;
    if (!nvml->call(&NvmlTable::pciInfo, device, &pci)) continue;
    InstalledGpu& gpu = all.emplace_back();
    gpu.pciBusId = canonicalPciBusId(pci.busId);
    gpu.name = textOf(*nvml, &NvmlTable::name, device);
    gpu.uuid = textOf(*nvml, &NvmlTable::uuid, device);
    unsigned mode = 0;
    unsigned pending = 0;
    gpu.isPartitioned = nvml->call(&NvmlTable::migMode, device, &mode, &pending) && mode == 1;
  }
  return all;
}

}  // namespace gradlink::cuda
