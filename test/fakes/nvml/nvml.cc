// libnvidia-ml.so.1 for the simulated machine: what support/machine.h says, in NVML's words.
#include "cuda/nvml.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>

#include "support/export.h"
#include "support/machine.h"

namespace gradlink::fake {
namespace {

using Status = cuda::NvmlStatus;
using Device = cuda::NvmlDevice;

constexpr Status kOk = 0;
constexpr Status kUninitialized = 1;
constexpr Status kInvalidArgument = 2;
constexpr Status kNotSupported = 3;
constexpr Status kNotFound = 6;
constexpr Status kInsufficientSize = 7;
constexpr Status kDriverNotLoaded = 9;
constexpr Status kTimeout = 10;
constexpr Status kGpuIsLost = 15;

constexpr char kDriverRelease[] = "580.65.06";
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr unsigned kLinkVersion = 6;  // 4.0
/// nvmlIntNvLinkDeviceType_t.
constexpr int kRemoteGpu = 0;
constexpr int kRemoteSwitch = 2;
constexpr int kRemoteUnknown = 255;
constexpr unsigned kFieldCommonLinkSpeed = 90;
constexpr unsigned kFieldLinkCount = 91;
constexpr unsigned kFieldLinkSpeed = 164;
constexpr unsigned kFieldC2cLinkCount = 170;
constexpr unsigned kFieldC2cLinkStatus = 171;
constexpr unsigned kC2cLinks = 10;
/// Clock reasons of a GPU that is held back: software power cap, hardware thermal.
constexpr unsigned long long kThrottleReasons = 0x4 | 0x40;

std::atomic<bool> initialized{false};
/// Questions about a GPU so far.
std::atomic<int> calls{0};
/// Errors so far of a GPU whose links lose packets: one more at each look.
std::array<std::atomic<unsigned long long>, 64> linkErrors{};

/// GPUs of which an XID said that they fell off the bus.
std::array<std::atomic<bool>, 64> lost{};

/// A handle is the address of the GPU's description.
Device handleOf(const Gpu& gpu) { return reinterpret_cast<Device>(const_cast<Gpu*>(&gpu)); }
const Gpu* gpuOf(Device device) {
  for (int i = 0; i < Machine::get().count(); ++i) {
    const Gpu& gpu = Machine::get().gpu(i);
    if (handleOf(gpu) == device) return &gpu;
  }
  return nullptr;
}

int indexOf(const Gpu& gpu) { return static_cast<int>(&gpu - &Machine::get().gpu(0)); }

Status enter(Device device, const Gpu*& gpu) {
  ++calls;
  if (!initialized) return kUninitialized;
  gpu = gpuOf(device);
  return gpu ? kOk : kInvalidArgument;
}

/// kInvalidArgument past the last link, as NVML ends a loop over them.
Status enter(Device device, unsigned link, const Gpu*& gpu) {
  if (const Status status = enter(device, gpu)) return status;
  return link < gpu->links.size() ? kOk : kInvalidArgument;
}

/// Calls a function that is defined for a GPU, or one and a link of it, by the GPU's handle.
template <auto kFunction, class... Arguments>
Status ofGpu(Device device, Arguments... arguments) {
  const Gpu* gpu = nullptr;
  const Status status = enter(device, gpu);
  return status ? status : kFunction(*gpu, arguments...);
}
template <auto kFunction, class... Arguments>
Status ofLink(Device device, unsigned link, Arguments... arguments) {
  const Gpu* gpu = nullptr;
  const Status status = enter(device, link, gpu);
  return status ? status : kFunction(*gpu, link, arguments...);
}
#define FAKE_OF(entry, name, arguments)                                                        \
  FAKE_EXPORT_AS(Status, name, FAKE_AFTER(Device, arguments),                                  \
                 FAKE_AFTER([[maybe_unused]] const Gpu& gpu, arguments), &entry<&fake_##name>, \
                 true)
#define FAKE_OF_GPU(name, arguments) FAKE_OF(ofGpu, name, arguments)
#define FAKE_OF_LINK(name, arguments) FAKE_OF(ofLink, name, arguments)
/// A function that gives one number.
#define FAKE_NUMBER(name, value) \
  FAKE_OF_GPU(name, (unsigned* number)) { return write(number, value); }

bool isFaulty(const char* name, const Gpu& gpu) {
  return hasFault(name, std::to_string(indexOf(gpu)));
}

Status write(unsigned* to, unsigned value) {
  *to = value;
  return kOk;
}

Status write(char* to, unsigned length, const std::string& text) {
  if (length <= text.size()) return kInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kOk;
}

/// "0000:1b:00.0" and "00000000:1B:00.0" are one.
bool sameBusId(std::string_view id, const Gpu& gpu) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  return std::sscanf(std::string(id).c_str(), "%x:%x:%x", &domain, &bus, &device) == 3 &&
         domain == 0 && bus == gpu.bus && device == 0;
}

void describe(const Gpu& gpu, cuda::NvmlPci* pci) {
  *pci = {};
  pci->bus = gpu.bus;
  std::snprintf(pci->shortBusId, sizeof pci->shortBusId, "0000:%02X:00.0", gpu.bus);
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", gpu.bus);
}

bool hasC2c() { return fault("c2c").has_value(); }

Status readField(const Gpu& gpu, cuda::NvmlField& field) {
  field.type = 1;
  switch (field.id) {
    case kFieldCommonLinkSpeed:
      if (gpu.links.empty()) return kNotSupported;
      field.value.asU32 = Machine::kLinkMegabytes;
      return kOk;
    case kFieldLinkCount:
      field.value.asU32 = static_cast<std::uint32_t>(gpu.links.size());
      return kOk;
    case kFieldLinkSpeed:
      if (field.scope >= gpu.links.size()) return kInvalidArgument;
      // Of one that is down some drivers tell 0, others what it would have.
      field.value.asU32 =
          gpu.links[field.scope].active || field.scope % 2 == 0 ? Machine::kLinkMegabytes : 0;
      return kOk;
    case kFieldC2cLinkCount:
      field.value.asU32 = hasC2c() ? kC2cLinks : 0;
      return kOk;
    case kFieldC2cLinkStatus:
      if (!hasC2c() || field.scope >= kC2cLinks) return kInvalidArgument;
      field.value.asU32 = 1;
      return kOk;
    default:
      return kNotSupported;
  }
}

/// As in a virtual machine whose NVSwitches the host keeps.
bool remotesAreUnknown() { return hasFault("nvlink-remote", "unknown"); }

}  // namespace

FAKE_EXPORT(Status, nvmlInit_v2, ()) {
  if (fault("nvml-absent")) return kDriverNotLoaded;
  initialized = true;
  return kOk;
}

FAKE_EXPORT(Status, nvmlSystemGetDriverVersion, (char* text, unsigned length)) {
  if (!initialized) return kUninitialized;
  return write(text, length, kDriverRelease);
}

FAKE_EXPORT(Status, nvmlSystemGetConfComputeState, (cuda::NvmlConfidential * state)) {
  if (!initialized) return kUninitialized;
  *state = {.environment = 0, .feature = fault("confidential") ? 1U : 0U, .devTools = 0};
  return kOk;
}

FAKE_EXPORT(Status, nvmlDeviceGetCount_v2, (unsigned* count)) {
  return initialized ? write(count, static_cast<unsigned>(Machine::get().count())) : kUninitialized;
}

FAKE_EXPORT(Status, nvmlDeviceGetHandleByIndex_v2, (unsigned index, Device* device)) {
  if (!initialized) return kUninitialized;
  if (index >= static_cast<unsigned>(Machine::get().count())) return kInvalidArgument;
  *device = handleOf(Machine::get().gpu(static_cast<int>(index)));
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetName, (char* text, unsigned length)) {
  return write(text, length, "gradlink fake GPU");
}

FAKE_OF_GPU(nvmlDeviceGetUUID, (char* text, unsigned length)) {
  return write(text, length, "GPU-" + uuidText(gpu.uuid));
}

FAKE_OF_GPU(nvmlDeviceGetPciInfo_v3, (cuda::NvmlPci * pci)) {
  describe(gpu, pci);
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetMigMode, (unsigned* mode, unsigned* pending)) {
  *pending = *mode = isFaulty("mig", gpu) ? 1 : 0;
  return kOk;
}

FAKE_EXPORT(Status, nvmlDeviceGetHandleByPciBusId_v2, (const char* id, Device* device)) {
  if (!initialized) return kUninitialized;
  for (int i = 0; i < Machine::get().count(); ++i) {
    const Gpu& gpu = Machine::get().gpu(i);
    if (!sameBusId(id, gpu)) continue;
    if (lost[static_cast<std::size_t>(i)]) return kGpuIsLost;
    *device = handleOf(gpu);
    return kOk;
  }
  return kNotFound;
}

FAKE_EXPORT(Status, nvmlDeviceGetTopologyCommonAncestor, (Device one, Device other, int* level)) {
  const Gpu* first = nullptr;
  const Gpu* second = nullptr;
  if (const Status status = enter(one, first)) return status;
  if (const Status status = enter(other, second)) return status;
  // Two share a PCIe switch; all share a NUMA node.
  *level = indexOf(*first) / 2 == indexOf(*second) / 2 ? 10 : 40;
  if (first == second) *level = 0;
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetMemoryAffinity, (unsigned words, unsigned long* nodes, unsigned)) {
  if (words == 0) return kInvalidArgument;
  std::memset(nodes, 0, words * sizeof *nodes);
  nodes[0] = 1;
  return kOk;
}

FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, gpu.pcieGeneration)
FAKE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, gpu.pcieWidth)
FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, Machine::kMaxPcieGeneration)
FAKE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, Machine::kMaxPcieWidth)
FAKE_NUMBER(nvmlDeviceGetPcieReplayCounter, 0)

FAKE_OF_GPU(nvmlDeviceGetMaxClockInfo, (int which, unsigned* megahertz)) {
  if (which == kSmClock) return write(megahertz, Machine::kClockKHz / 1000);
  if (which == kMemoryClock) return write(megahertz, Machine::kMemoryClockKHz / 1000);
  return kNotSupported;
}

FAKE_OF_GPU(nvmlDeviceGetClockInfo, (int which, unsigned* megahertz)) {
  if (const Status status = fake_nvmlDeviceGetMaxClockInfo(gpu, which, megahertz)) return status;
  if (gpu.throttled) *megahertz = static_cast<unsigned>(*megahertz * kThrottledShare);
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetTemperature, (int sensor, unsigned* celsius)) {
  return sensor == 0 ? write(celsius, gpu.throttled ? 91 : 41) : kInvalidArgument;
}

FAKE_NUMBER(nvmlDeviceGetPowerUsage, 123456)

FAKE_OF_GPU(nvmlDeviceGetUtilizationRates, (cuda::NvmlUtilization * utilization)) {
  if (utilization == nullptr) return kInvalidArgument;
  *utilization = {.gpu = 37, .memory = 12};
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetCurrentClocksEventReasons, (unsigned long long* reasons)) {
  *reasons = gpu.throttled ? kThrottleReasons : 0;
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetCurrentClocksThrottleReasons, (unsigned long long* reasons)) {
  return fake_nvmlDeviceGetCurrentClocksEventReasons(gpu, reasons);
}

FAKE_OF_GPU(nvmlDeviceGetTotalEccErrors, (int kind, int, unsigned long long* count)) {
  // Corrected, and not.
  *count = isFaulty("ecc-errors", gpu) ? (kind == 0 ? 5 : 2) : 0;
  return kOk;
}

FAKE_OF_LINK(nvmlDeviceGetNvLinkState, (unsigned link, int* active)) {
  *active = gpu.links[link].active ? 1 : 0;
  return kOk;
}

FAKE_OF_LINK(nvmlDeviceGetNvLinkVersion, (unsigned, unsigned* version)) {
  return write(version, kLinkVersion);
}

FAKE_OF_LINK(nvmlDeviceGetNvLinkRemotePciInfo_v2, (unsigned link, cuda::NvmlPci* pci)) {
  const NvLink& at = gpu.links[link];
  if (!at.active || remotesAreUnknown()) return kNotSupported;
  if (at.remote == NvLink::kSwitch) {
    *pci = {};
    pci->bus = 0xf0;
    std::snprintf(pci->busId, sizeof pci->busId, "00000000:F0:00.0");
  } else {
    describe(Machine::get().gpu(at.remote), pci);
  }
  return kOk;
}

FAKE_OF_LINK(nvmlDeviceGetNvLinkRemoteDeviceType, (unsigned link, int* type)) {
  *type = gpu.links[link].remote == NvLink::kSwitch ? kRemoteSwitch : kRemoteGpu;
  if (remotesAreUnknown()) *type = kRemoteUnknown;
  return kOk;
}

FAKE_OF_LINK(nvmlDeviceGetNvLinkErrorCounter,
             (unsigned link, int counter, unsigned long long* count)) {
  if (counter < 0 || counter > 4) return kInvalidArgument;
  const bool counts = counter == 0 && link == 0 && isFaulty("link-errors", gpu);
  *count = counts ? ++linkErrors[indexOf(gpu)] : 0;
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceGetFieldValues, (int count, cuda::NvmlField* fields)) {
  for (int i = 0; i < count; ++i) fields[i].status = readField(gpu, fields[i]);
  return kOk;
}

/// An event set is the events that nobody has waited for yet.
using Events = std::deque<cuda::NvmlEvent>;
constexpr unsigned long long kXid = 0x8;
constexpr unsigned long long kFellOffTheBus = 79;

FAKE_EXPORT(Status, nvmlEventSetCreate, (cuda::NvmlEventSet * set)) {
  if (!initialized) return kUninitialized;
  *set = reinterpret_cast<cuda::NvmlEventSet>(new Events);
  return kOk;
}

FAKE_OF_GPU(nvmlDeviceRegisterEvents, (unsigned long long types, cuda::NvmlEventSet set)) {
  if ((types & ~kXid) != 0) return kNotSupported;
  const std::string own = std::to_string(indexOf(gpu)) + ":";
  for (const std::string& fault : faultValues("xid")) {
    if (!fault.starts_with(own)) continue;
    const double number = parseNumber(fault.substr(own.size()), "GRADLINK_FAKE_FAULTS");
    reinterpret_cast<Events*>(set)->push_back({.device = handleOf(gpu),
                                               .type = kXid,
                                               .data = static_cast<unsigned long long>(number),
                                               .gpuInstance = ~0u,
                                               .computeInstance = ~0u});
  }
  return kOk;
}

FAKE_EXPORT(Status, nvmlEventSetWait_v2,
            (cuda::NvmlEventSet set, cuda::NvmlEvent* event, unsigned)) {
  if (!initialized) return kUninitialized;
  Events& events = *reinterpret_cast<Events*>(set);
  if (events.empty()) return kTimeout;
  *event = events.front();
  if (event->data == kFellOffTheBus) lost[indexOf(*gpuOf(event->device))] = true;
  events.pop_front();
  return kOk;
}

FAKE_EXPORT(Status, nvmlEventSetFree, (cuda::NvmlEventSet set)) {
  delete reinterpret_cast<Events*>(set);
  return kOk;
}

#define GRADLINK_CHECK(symbol, member, arguments) \
  static_assert(std::is_same_v<decltype(&symbol), decltype(cuda::NvmlTable::member)>);
GRADLINK_NVML_FUNCTIONS(GRADLINK_CHECK)
#undef GRADLINK_CHECK

}  // namespace gradlink::fake

extern "C" __attribute__((visibility("default"))) int gradlinkFakeNvmlCalls() {
  return gradlink::fake::calls;
}
