#include "cuda/info.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cuda/abi_numbers.h"
#include "cuda/device.h"
#include "cuda/kernel_module.h"
#include "cuda/nvml.h"

namespace gradlink::cuda {
namespace {

/// 0 if unknown.
int attributeOf(const Device& device, int id) {
  int value = 0;
  return Driver::get().deviceAttribute(&value, id, device.handle()) == kSuccess ? value : 0;
}

std::string uuidText(const char* prefix, const Uuid& uuid) {
  std::string text = prefix;
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%02x", unsigned{uuid.bytes[i]});
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

/// The newer function returns the id of a MIG instance, the older one that of the whole GPU.
std::optional<std::string> uuidOf(const Driver& driver, DeviceHandle device) {
  Uuid whole{};
  Uuid part{};
  const bool hasWhole =
      driver.deviceUuidOld != nullptr && driver.deviceUuidOld(&whole, device) == kSuccess;
  const bool hasPart = driver.deviceUuid != nullptr && driver.deviceUuid(&part, device) == kSuccess;
  if (!hasPart) return hasWhole ? std::optional(uuidText("GPU-", whole)) : std::nullopt;
  const bool isPart = hasWhole && !std::equal(part.bytes, part.bytes + 16, whole.bytes);
  return uuidText(isPart ? "MIG-" : "GPU-", part);
}

std::string pciBusIdOf(const Device& device) {
  char id[64] = {};
  check(Driver::get().devicePciBusId(id, static_cast<int>(sizeof(id)) - 1, device.handle()),
        "cannot read the PCI address of " + device.label());
  return canonicalPciBusId(id);
}

/// nvmlGpuTopologyLevel_t with the names of nvidia-smi topo.
std::optional<std::string> pathOf(int level) {
  switch (level) {
    case nvml::kSameBoard:
      return "X";
    case nvml::kOneSwitch:
      return "PIX";
    case nvml::kManySwitches:
      return "PXB";
    case nvml::kHostBridge:
      return "PHB";
    case nvml::kSameNode:
      return "NODE";
    case nvml::kSystem:
      return "SYS";
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string pciBusIdOf(int ordinal) { return pciBusIdOf(Device::get(ordinal)); }

GpuInfo gpuInfo(int ordinal) {
  const Driver& driver = Driver::get();
  const Device& device = Device::get(ordinal);
  GpuInfo info;
  info.ordinal = ordinal;
  char name[256] = {};
  check(driver.deviceName(name, static_cast<int>(sizeof(name)) - 1, device.handle()),
        "cannot read the name of " + device.label());
  info.name = name;
  info.uuid = uuidOf(driver, device.handle());
  info.pciBusId = pciBusIdOf(device);
  check(driver.deviceTotalMem(&info.memoryBytes, device.handle()),
        "cannot read the memory of " + device.label());
  info.computeCapability = device.capability();
  info.kernels = kernelsOf(device);
  const int mode = attributeOf(device, kComputeMode);
  info.computeMode = mode == kProhibited         ? "prohibited"
                     : mode == kExclusiveProcess ? "exclusive"
                                                 : "default";
  info.multiprocessors = device.multiprocessors();
  info.l2Bytes = static_cast<std::size_t>(attributeOf(device, kL2Bytes));
  info.copyEngines = attributeOf(device, kCopyEngines);
  info.memoryBusBits = attributeOf(device, kMemoryBusBits);
  info.memoryClockKHz = attributeOf(device, kMemoryClockKHz);
  info.health = gpuHealth(info.pciBusId);
  return info;
}

GpuPeer gpuPeer(int from, int to) {
  const Device& source = Device::get(from);
  const Device& target = Device::get(to);
  GpuPeer peer;
  peer.access = source.canReach(target);
  int rank = 0;
  // The driver answers for two different GPUs only.
  if (from != to && peer.access &&
      Driver::get().peerAttribute(&rank, kPerformanceRank, source.handle(), target.handle()) ==
          kSuccess) {
    peer.performanceRank = rank;
  }
  const Nvml* nvml = Nvml::get();
  if (from == to) {
    peer.path = pathOf(nvml::kSameBoard);
  } else if (nvml != nullptr) {
    const std::optional<NvmlDevice> a = nvml->device(pciBusIdOf(source));
    const std::optional<NvmlDevice> b = nvml->device(pciBusIdOf(target));
    int level = 0;
    if (a && b && nvml->call(&NvmlTable::commonAncestor, *a, *b, &level)) {
      peer.path = pathOf(level);
    }
  }
  return peer;
}

GpuLibraries gpuLibraries() {
  const Driver& driver = Driver::get();
  GpuLibraries libraries;
  libraries.driverFile = driver.file;
  libraries.driverVersion = driver.version;
  const Nvml* nvml = Nvml::get();
  if (nvml == nullptr) {
    libraries.nvmlMissing = Nvml::missing();
    return libraries;
  }
  libraries.nvmlFile = nvml->file();
  char release[128] = {};
  if (nvml->call(&NvmlTable::driverRelease, release, unsigned{sizeof(release) - 1})) {
    libraries.driverRelease = release;
  }
  libraries.isConfidential = isConfidential();
  return libraries;
}

bool isConfidential() {
  const Nvml* nvml = Nvml::get();
  NvmlConfidential state{};
  return nvml != nullptr && nvml->call(&NvmlTable::confidential, &state) && state.feature == 1;
}

std::string canonicalPciBusId(const std::string& id) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  if (std::sscanf(id.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return id;
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return text;
}

}  // namespace gradlink::cuda
