// NVML as a table of functions, each of which may be missing, looked up at first use in
// libnvidia-ml.so.1 (or the file in GRADLINK_NVML_LIBRARY). Types have NVML's layout.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace gradlink::cuda {

using NvmlStatus = int;  // nvmlReturn_t
using NvmlDevice = struct NvmlDeviceTag*;

inline constexpr NvmlStatus kNvmlSuccess = 0;

struct NvmlPci {  // nvmlPciInfo_t
  char shortBusId[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned deviceId;
  unsigned subsystemId;
  /// "00000000:1B:00.0".
  char busId[32];
};
static_assert(sizeof(NvmlPci) == 68);

struct NvmlField {  // nvmlFieldValue_t
  unsigned id;
  /// For an NVLink field: the index of the link.
  unsigned scope;
  std::int64_t timestamp;
  std::int64_t latency;
  /// 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int, 6 ushort.
  int type;
  NvmlStatus status;
  union {
    double asDouble;
    std::uint64_t asU64;
    std::int64_t asI64;
    std::uint32_t asU32;
    std::int32_t asI32;
    std::uint16_t asU16;
  } value;
};
static_assert(sizeof(NvmlField) == 40);

/// Percent of the last sampling period in which a kernel ran, or memory was read or written.
struct NvmlUtilization {
  unsigned gpu;
  unsigned memory;
};

struct NvmlConfidential {  // nvmlConfComputeSystemState_t
  unsigned environment;
  /// 1: the GPUs' memory is protected, and what passes to the host is encrypted.
  unsigned feature;
  unsigned devTools;
};

using NvmlEventSet = struct NvmlEventSetTag*;

struct NvmlEvent {  // nvmlEventData_t
  NvmlDevice device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpuInstance;
  unsigned computeInstance;
};
static_assert(sizeof(NvmlEvent) == 32);

/// X(exported name, member, argument types).
#define GRADLINK_NVML_FUNCTIONS(X)                                                                 \
  X(nvmlInit_v2, init, ())                                                                         \
  X(nvmlSystemGetDriverVersion, driverRelease, (char*, unsigned))                                  \
  X(nvmlSystemGetConfComputeState, confidential, (NvmlConfidential*))                              \
  X(nvmlDeviceGetCount_v2, count, (unsigned*))                                                     \
  X(nvmlDeviceGetHandleByIndex_v2, byIndex, (unsigned, NvmlDevice*))                               \
  X(nvmlDeviceGetName, name, (NvmlDevice, char*, unsigned))                                        \
  X(nvmlDeviceGetUUID, uuid, (NvmlDevice, char*, unsigned))                                        \
  X(nvmlDeviceGetPciInfo_v3, pciInfo, (NvmlDevice, NvmlPci*))                                      \
  X(nvmlDeviceGetMigMode, migMode, (NvmlDevice, unsigned*, unsigned*))                             \
  X(nvmlDeviceGetHandleByPciBusId_v2, byPciBusId, (const char*, NvmlDevice*))                      \
  X(nvmlDeviceGetTopologyCommonAncestor, commonAncestor, (NvmlDevice, NvmlDevice, int*))           \
  X(nvmlDeviceGetMemoryAffinity, memoryAffinity, (NvmlDevice, unsigned, unsigned long*, unsigned)) \
  X(nvmlDeviceGetCurrPcieLinkGeneration, pcieGeneration, (NvmlDevice, unsigned*))                  \
  X(nvmlDeviceGetCurrPcieLinkWidth, pcieWidth, (NvmlDevice, unsigned*))                            \
  X(nvmlDeviceGetMaxPcieLinkGeneration, maxPcieGeneration, (NvmlDevice, unsigned*))                \
  X(nvmlDeviceGetMaxPcieLinkWidth, maxPcieWidth, (NvmlDevice, unsigned*))                          \
  X(nvmlDeviceGetPcieReplayCounter, pcieReplays, (NvmlDevice, unsigned*))                          \
  X(nvmlDeviceGetClockInfo, clock, (NvmlDevice, int, unsigned*))                                   \
  X(nvmlDeviceGetMaxClockInfo, maxClock, (NvmlDevice, int, unsigned*))                             \
  X(nvmlDeviceGetTemperature, temperature, (NvmlDevice, int, unsigned*))                           \
  X(nvmlDeviceGetPowerUsage, power, (NvmlDevice, unsigned*))                                       \
  X(nvmlDeviceGetUtilizationRates, utilization, (NvmlDevice, NvmlUtilization*))                    \
  X(nvmlDeviceGetCurrentClocksEventReasons, clockReasons, (NvmlDevice, unsigned long long*))       \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, clockReasonsOld, (NvmlDevice, unsigned long long*)) \
  X(nvmlDeviceGetTotalEccErrors, eccErrors, (NvmlDevice, int, int, unsigned long long*))           \
  X(nvmlDeviceGetNvLinkState, linkState, (NvmlDevice, unsigned, int*))                             \
  X(nvmlDeviceGetNvLinkVersion, linkVersion, (NvmlDevice, unsigned, unsigned*))                    \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2, linkRemotePci, (NvmlDevice, unsigned, NvmlPci*))          \
  X(nvmlDeviceGetNvLinkRemoteDeviceType, linkRemoteType, (NvmlDevice, unsigned, int*))             \
  X(nvmlDeviceGetNvLinkErrorCounter, linkErrors, (NvmlDevice, unsigned, int, unsigned long long*)) \
  X(nvmlDeviceGetFieldValues, fields, (NvmlDevice, int, NvmlField*))                               \
  X(nvmlEventSetCreate, createEvents, (NvmlEventSet*))                                             \
  X(nvmlDeviceRegisterEvents, registerEvents, (NvmlDevice, unsigned long long, NvmlEventSet))      \
  X(nvmlEventSetWait_v2, nextEvent, (NvmlEventSet, NvmlEvent*, unsigned))                          \
  X(nvmlEventSetFree, freeEvents, (NvmlEventSet))

struct NvmlTable {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters take none.
#define GRADLINK_MEMBER(symbol, member, arguments) NvmlStatus(*member) arguments = nullptr;
  GRADLINK_NVML_FUNCTIONS(GRADLINK_MEMBER)
#undef GRADLINK_MEMBER
};

/// The initialized library. One lock serializes its calls: not all releases are thread-safe.
class Nvml {
 public:
  /// Null without NVML; `missing` has the reason.
  static const Nvml* get();
  static const std::string& missing();

  const std::string& file() const { return file_; }
  /// The device at this address, in GpuInfo::pciBusId's form.
  std::optional<NvmlDevice> device(const std::string& pciBusId) const;

  /// Calls a member of the table. False if it is missing or fails.
  template <class... Parameters, class... Arguments>
  bool call(NvmlStatus (*NvmlTable::*member)(Parameters...), Arguments... arguments) const {
    const auto function = table_.*member;
    if (function == nullptr) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return function(arguments...) == kNvmlSuccess;
  }

 private:
  struct Found;
  static const Found& found();
  Nvml();

  NvmlTable table_;
  std::string file_;
  mutable std::mutex mutex_;
};

}  // namespace gradlink::cuda
