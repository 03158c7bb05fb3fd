// A GPU's state from NVML. Each figure may be missing, depending on the driver and GPU.
#include <array>
#include <bit>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "cuda/abi_numbers.h"
#include "cuda/info.h"
#include "cuda/nvml.h"

namespace gradlink::cuda {
namespace {

using Unsigned = NvmlStatus (*NvmlTable::*)(NvmlDevice, unsigned*);

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

  /// A field of the device or of one of its links.
  std::optional<std::uint64_t> field(unsigned id, unsigned scope = 0) const {
    NvmlField field{};
    field.id = id;
    field.scope = scope;
    if (!call(&NvmlTable::fields, 1, &field) || field.status != kNvmlSuccess) return std::nullopt;
    switch (field.type) {
      case nvml::kDouble:
        return static_cast<std::uint64_t>(field.value.asDouble);
      case nvml::kUnsigned:
        return field.value.asU32;
      case nvml::kUnsignedLong:
      case nvml::kUnsignedLongLong:
        return field.value.asU64;
      case nvml::kLongLong:
        return static_cast<std::uint64_t>(field.value.asI64);
      case nvml::kInt:
        return static_cast<std::uint64_t>(field.value.asI32);
      case nvml::kUnsignedShort:
        return field.value.asU16;
      default:
        return std::nullopt;
    }
  }

 private:
  const Nvml& nvml_;
  NvmlDevice device_;
};

/// None without NVML, or if it does not know the GPU.
std::optional<Reader> readerOf(const std::string& pciBusId) {
  const Nvml* nvml = Nvml::get();
  if (nvml == nullptr) return std::nullopt;
  const std::optional<NvmlDevice> device = nvml->device(pciBusId);
  if (!device) return std::nullopt;
  return Reader(*nvml, *device);
}

std::optional<int> clockOf(const Reader& reader,
                           NvmlStatus (*NvmlTable::*member)(NvmlDevice, int, unsigned*),
                           int which) {
  unsigned megahertz = 0;
  if (!reader.call(member, which, &megahertz)) return std::nullopt;
  return static_cast<int>(megahertz);
}

std::optional<int> numaNodeOf(const Reader& reader, const std::string& pciBusId) {
  constexpr unsigned kWords = 16;
  unsigned long nodes[kWords] = {};
  if (reader.call(&NvmlTable::memoryAffinity, kWords, nodes, nvml::kNearestNode)) {
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
  // -1 if the firmware does not say.
  std::ifstream file("/sys/bus/pci/devices/" + pciBusId + "/numa_node");
  int node = -1;
  if (file >> node && node >= 0) return node;
  return std::nullopt;
}

std::optional<std::uint64_t> eccErrorsOf(const Reader& reader) {
  unsigned long long corrected = 0;
  unsigned long long uncorrected = 0;
  if (!reader.call(&NvmlTable::eccErrors, nvml::kCorrected, nvml::kSinceDriverLoad, &corrected) ||
      !reader.call(&NvmlTable::eccErrors, nvml::kUncorrected, nvml::kSinceDriverLoad,
                   &uncorrected)) {
    return std::nullopt;
  }
  return corrected + uncorrected;
}

std::optional<std::string> versionOf(unsigned number) {
  constexpr std::array<const char*, 9> kNames{"",    "1.0", "2.0", "2.2", "3.0",
                                              "3.1", "4.0", "5.0", "6.0"};
  if (number == 0 || number >= kNames.size()) return std::nullopt;
  return kNames[number];
}

std::optional<std::uint64_t> linkErrorsOf(const Reader& reader, unsigned link) {
  std::optional<std::uint64_t> sum;
  for (int counter = 0; counter < nvml::kLinkErrorCounters; ++counter) {
    unsigned long long count = 0;
    if (reader.call(&NvmlTable::linkErrors, link, counter, &count)) sum = sum.value_or(0) + count;
  }
  if (sum) return sum;
  for (const unsigned id : nvml::kLinkErrorFields) {
    if (const auto count = reader.field(id, link)) sum = sum.value_or(0) + *count;
  }
  return sum;
}

std::vector<GpuLink> linksOf(const Reader& reader, Links which) {
  std::vector<GpuLink> links;
  for (unsigned index = 0; index < nvml::kMostLinks; ++index) {
    int active = 0;
    if (!reader.call(&NvmlTable::linkState, index, &active)) continue;
    GpuLink& link = links.emplace_back();
    link.index = static_cast<int>(index);
    link.active = active != 0;
    link.errors = linkErrorsOf(reader, index);
    if (which == Links::counted) continue;
    unsigned version = 0;
    if (reader.call(&NvmlTable::linkVersion, index, &version)) link.version = versionOf(version);
    std::optional<std::uint64_t> speed = reader.field(nvml::kFieldLinkSpeed, index);
    if (!speed) speed = reader.field(nvml::kFieldCommonLinkSpeed);
    // A link that is down may report a speed of 0.
    if (link.active && speed && *speed > 0) {
      link.bytesPerSecond = static_cast<double>(*speed) * 1e6;
    }
    if (!link.active) continue;
    int type = 0;
    link.remoteIsSwitch =
        reader.call(&NvmlTable::linkRemoteType, index, &type) && type == nvml::kRemoteSwitch;
    NvmlPci pci{};
    if (!link.remoteIsSwitch && reader.call(&NvmlTable::linkRemotePci, index, &pci)) {
      pci.busId[sizeof(pci.busId) - 1] = '\0';
      link.remotePciBusId = canonicalPciBusId(pci.busId);
    }
  }
  return links;
}

std::optional<int> c2cLinksOf(const Reader& reader) {
  const std::optional<std::uint64_t> count = reader.field(nvml::kFieldC2cLinkCount);
  if (!count) return std::nullopt;
  int active = 0;
  for (unsigned link = 0; link < *count; ++link) {
    if (reader.field(nvml::kFieldC2cLinkStatus, link) == 1) ++active;
  }
  return active;
}

/// NVML's queue of a GPU's XIDs, or null.
NvmlEventSet xidQueueOf(const std::string& pciBusId) {
  const std::optional<Reader> reader = readerOf(pciBusId);
  NvmlEventSet queue = nullptr;
  if (!reader || !Nvml::get()->call(&NvmlTable::createEvents, &queue)) return nullptr;
  if (reader->call(&NvmlTable::registerEvents, nvml::kXidEvents, queue)) return queue;
  Nvml::get()->call(&NvmlTable::freeEvents, queue);
  return nullptr;
}

}  // namespace

std::optional<int> nearestNode(const std::string& pciBusId) {
  const std::optional<Reader> reader = readerOf(pciBusId);
  return reader ? numaNodeOf(*reader, pciBusId) : std::nullopt;
}

std::optional<GpuHealth> gpuHealth(const std::string& pciBusId, Links links) {
  const std::optional<Reader> found = readerOf(pciBusId);
  if (!found) return std::nullopt;
  const Reader& reader = *found;
  GpuHealth health;
  health.numaNode = numaNodeOf(reader, pciBusId);
  health.pcieGeneration = reader.number(&NvmlTable::pcieGeneration);
  health.pcieWidth = reader.number(&NvmlTable::pcieWidth);
  health.maxPcieGeneration = reader.number(&NvmlTable::maxPcieGeneration);
  health.maxPcieWidth = reader.number(&NvmlTable::maxPcieWidth);
  health.smClockMHz = clockOf(reader, &NvmlTable::clock, nvml::kSmClock);
  health.maxSmClockMHz = clockOf(reader, &NvmlTable::maxClock, nvml::kSmClock);
  health.memoryClockMHz = clockOf(reader, &NvmlTable::clock, nvml::kMemoryClock);
  unsigned celsius = 0;
  if (reader.call(&NvmlTable::temperature, nvml::kGpuSensor, &celsius)) {
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
  health.c2cLinks = c2cLinksOf(reader);
  health.links = linksOf(reader, links);
  return health;
}

std::vector<int> gpuXids(const std::string& pciBusId) {
  // Never freed: they count until the process ends.
  static auto& queues = *new std::map<std::string, NvmlEventSet>;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [at, isNew] = queues.try_emplace(pciBusId, nullptr);
  std::vector<int> xids;
  if (isNew) {
    at->second = xidQueueOf(pciBusId);
    return xids;
  }
  NvmlEvent event{};
  while (at->second != nullptr &&
         Nvml::get()->call(&NvmlTable::nextEvent, at->second, &event, 0u)) {
    if (event.type == nvml::kXidEvents) xids.push_back(static_cast<int>(event.data));
  }
  return xids;
}

std::vector<std::string> throttleReasonNames(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : nvml::kClockReasons) {
    if ((bits & bit) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace gradlink::cuda
