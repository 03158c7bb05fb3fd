// What NVML says of a GPU's state. Each figure stands alone: what one driver or GPU does not tell
// stays empty.
#include <array>
#include <bit>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "cuda/info.h"
#include "cuda/nvml.h"

namespace gradlink::cuda {
namespace {

// nvmlClockType_t.
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
// As many as NVML knows of; those that a GPU has not fail.
constexpr unsigned kMostLinks = 36;
// nvmlIntNvLinkDeviceType_t.
constexpr int kRemoteSwitch = 2;
// Field ids of nvmlDeviceGetFieldValues.
constexpr unsigned kFieldCommonLinkSpeed = 90;  // MB/s
constexpr unsigned kFieldLinkSpeed = 164;       // MB/s
// NVLink 5 counts malformed packets, overrun buffers, receive errors of three kinds, broken link
// integrity and failed recoveries instead of replays and CRC errors.
constexpr std::array<unsigned, 7> kLinkErrorFields{206, 207, 208, 209, 210, 211, 214};
// nvmlNvLinkErrorCounter_t: replays, recoveries, CRC errors of flits and of data.
constexpr int kLinkErrorCounters = 4;

using Unsigned = NvmlStatus (*NvmlTable::*)(NvmlDevice, unsigned*);

/// NVML calls on one device.
class Reader {
 public:
  Reader(const Nvml& nvml, NvmlDevice device) : nvml_(nvml), device_(device) {}

  template <class... Parameters, class... Arguments>
  bool call(NvmlStatus (*NvmlTable::*member)(NvmlDevice, Parameters...),
            Arguments... arguments) const {
    return nvml_.call(member, device_, arguments...);
  }

  std::optional<int> number(Unsigned member) const {
    unsigned value = 0;
    if (!call(member, &value)) return std::nullopt;
    return static_cast<int>(value);
  }

  /// A field of the device, or of one of its links.
  std::optional<std::uint64_t> field(unsigned id, unsigned scope = 0) const {
    NvmlField field{};
    field.id = id;
    field.scope = scope;
    if (!call(&NvmlTable::fields, 1, &field) || field.status != kNvmlSuccess) return std::nullopt;
    switch (field.type) {
      case 0:
        return static_cast<std::uint64_t>(field.value.asDouble);
      case 1:
        return field.value.asU32;
      case 2:
      case 3:
        return field.value.asU64;
      case 4:
        return static_cast<std::uint64_t>(field.value.asI64);
      case 5:
        return static_cast<std::uint64_t>(field.value.asI32);
      case 6:
        return field.value.asU16;
      default:
        return std::nullopt;
    }
  }

 private:
  const Nvml& nvml_;
  NvmlDevice device_;
};

std::optional<int> clockOf(const Reader& reader,
                           NvmlStatus (*NvmlTable::*member)(NvmlDevice, int, unsigned*),
                           int which) {
  unsigned megahertz = 0;
  if (!reader.call(member, which, &megahertz)) return std::nullopt;
  return static_cast<int>(megahertz);
}

std::optional<int> numaNodeOf(const Reader& reader, const std::string& pciBusId) {
  constexpr unsigned kWords = 16;
  constexpr int kNearestNode = 0;  // nvmlAffinityScope_t
  unsigned long nodes[kWords] = {};
  if (reader.call(&NvmlTable::memoryAffinity, kWords, nodes, kNearestNode)) {
    std::optional<int> only;
    int count = 0;
    for (unsigned word = 0; word < kWords; ++word) {
      count += std::popcount(nodes[word]);
      if (nodes[word] != 0) {
        only = static_cast<int>(word * 8 * sizeof(long)) + std::countr_zero(nodes[word]);
      }
    }
    if (count == 1) return only;
  }
  // The kernel says -1 where the firmware does not tell.
  std::ifstream file("/sys/bus/pci/devices/" + pciBusId + "/numa_node");
  int node = -1;
  if (file >> node && node >= 0) return node;
  return std::nullopt;
}

std::optional<std::uint64_t> eccErrorsOf(const Reader& reader) {
  constexpr int kCorrected = 0;
  constexpr int kUncorrected = 1;
  constexpr int kSinceDriverLoad = 0;
  unsigned long long corrected = 0;
  unsigned long long uncorrected = 0;
  if (!reader.call(&NvmlTable::eccErrors, kCorrected, kSinceDriverLoad, &corrected) ||
      !reader.call(&NvmlTable::eccErrors, kUncorrected, kSinceDriverLoad, &uncorrected)) {
    return std::nullopt;
  }
  return corrected + uncorrected;
}

/// nvmlDeviceGetNvLinkVersion's numbers.
std::optional<std::string> versionOf(unsigned number) {
  constexpr std::array<const char*, 9> kNames{"",    "1.0", "2.0", "2.2", "3.0",
                                              "3.1", "4.0", "5.0", "6.0"};
  if (number == 0 || number >= kNames.size()) return std::nullopt;
  return kNames[number];
}

std::optional<std::uint64_t> linkErrorsOf(const Reader& reader, unsigned link) {
  std::optional<std::uint64_t> sum;
  for (int counter = 0; counter < kLinkErrorCounters; ++counter) {
    unsigned long long count = 0;
    if (reader.call(&NvmlTable::linkErrors, link, counter, &count)) sum = sum.value_or(0) + count;
  }
  if (sum) return sum;
  for (const unsigned id : kLinkErrorFields) {
    if (const auto count = reader.field(id, link)) sum = sum.value_or(0) + *count;
  }
  return sum;
}

std::vector<GpuLink> linksOf(const Reader& reader) {
  std::vector<GpuLink> links;
  for (unsigned index = 0; index < kMostLinks; ++index) {
    int active = 0;
    if (!reader.call(&NvmlTable::linkState, index, &active)) continue;
    GpuLink& link = links.emplace_back();
    link.index = static_cast<int>(index);
    link.active = active != 0;
    unsigned version = 0;
    if (reader.call(&NvmlTable::linkVersion, index, &version)) link.version = versionOf(version);
    std::optional<std::uint64_t> speed = reader.field(kFieldLinkSpeed, index);
    if (!speed) speed = reader.field(kFieldCommonLinkSpeed);
    // A link that is down has no speed, and may say 0.
    if (link.active && speed && *speed > 0) {
      link.bytesPerSecond = static_cast<double>(*speed) * 1e6;
    }
    link.errors = linkErrorsOf(reader, index);
    if (!link.active) continue;
    int type = 0;
    link.remoteIsSwitch =
        reader.call(&NvmlTable::linkRemoteType, index, &type) && type == kRemoteSwitch;
    NvmlPci pci{};
    if (!link.remoteIsSwitch && reader.call(&NvmlTable::linkRemotePci, index, &pci)) {
      pci.busId[sizeof(pci.busId) - 1] = '\0';
      link.remotePciBusId = canonicalPciBusId(pci.busId);
    }
  }
  return links;
}

}  // namespace

std::optional<GpuHealth> gpuHealth(const std::string& pciBusId) {
  const Nvml* nvml = Nvml::get();
  if (nvml == nullptr) return std::nullopt;
  const std::optional<NvmlDevice> device = nvml->device(pciBusId);
  if (!device) return std::nullopt;
  const Reader reader(*nvml, *device);
  GpuHealth health;
  health.numaNode = numaNodeOf(reader, pciBusId);
  health.pcieGeneration = reader.number(&NvmlTable::pcieGeneration);
  health.pcieWidth = reader.number(&NvmlTable::pcieWidth);
  health.maxPcieGeneration = reader.number(&NvmlTable::maxPcieGeneration);
  health.maxPcieWidth = reader.number(&NvmlTable::maxPcieWidth);
  health.smClockMHz = clockOf(reader, &NvmlTable::clock, kSmClock);
  health.maxSmClockMHz = clockOf(reader, &NvmlTable::maxClock, kSmClock);
  health.memoryClockMHz = clockOf(reader, &NvmlTable::clock, kMemoryClock);
  unsigned celsius = 0;
  if (reader.call(&NvmlTable::temperature, 0, &celsius)) {
    health.temperatureC = static_cast<int>(celsius);
  }
  if (const auto milliwatts = reader.number(&NvmlTable::power)) health.powerW = *milliwatts * 1e-3;
  NvmlUtilization utilization{};
  if (reader.call(&NvmlTable::utilization, &utilization)) {
    health.utilizationPercent = static_cast<int>(utilization.gpu);
  }
  unsigned long long reasons = 0;
  if (reader.call(&NvmlTable::clockReasons, &reasons) ||
      reader.call(&NvmlTable::clockReasonsOld, &reasons)) {
    health.throttleReasons = throttleReasonNames(reasons);
  }
  health.eccErrors = eccErrorsOf(reader);
  if (const auto replays = reader.number(&NvmlTable::pcieReplays)) health.pcieReplays = *replays;
  health.links = linksOf(reader);
  return health;
}

std::vector<std::string> throttleReasonNames(std::uint64_t bits) {
  constexpr std::pair<std::uint64_t, const char*> kNames[] = {
      {0x4, "softwarePowerCap"}, {0x8, "hardwareSlowdown"}, {0x10, "syncBoost"},
      {0x20, "softwareThermal"}, {0x40, "hardwareThermal"}, {0x80, "hardwarePowerBrake"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames) {
    if ((bits & bit) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace gradlink::cuda
