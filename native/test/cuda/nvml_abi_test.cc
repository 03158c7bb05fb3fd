// NVML's ABI as our table has it, against what its headers of 11.7 to 13.3 said when they were
// recorded and, where this machine has nvml.h, against that: all of it at compile time.
#include <gtest/gtest.h>

#include <cstddef>

#include "cuda/abi_numbers.h"
#include "cuda/nvml.h"
#include "test/abi/nvml.h"

#ifdef GRADLINK_NVML_HEADERS
#include <nvml.h>
#endif

namespace gradlink::test {
namespace {

using recorded::kNvmlFunctions;
using recorded::kNvmlNumbers;

#define GRADLINK_SAME(symbol, member, arguments)                        \
  static_assert(Signature<decltype(cuda::NvmlTable::member)>::text() == \
                    signatureOf(kNvmlFunctions, #symbol),               \
                "the prototype of " #symbol);
GRADLINK_NVML_FUNCTIONS(GRADLINK_SAME)
#undef GRADLINK_SAME

constexpr bool isNumber(std::string_view name, long long ours) {
  return numberOf(kNvmlNumbers, name) == ours;
}

static_assert(isNumber("sizeof(nvmlPciInfo_t)", sizeof(cuda::NvmlPci)));
static_assert(isNumber("offsetof(nvmlPciInfo_t, busIdLegacy)",
                       offsetof(cuda::NvmlPci, shortBusId)));
static_assert(isNumber("offsetof(nvmlPciInfo_t, domain)", offsetof(cuda::NvmlPci, domain)));
static_assert(isNumber("offsetof(nvmlPciInfo_t, bus)", offsetof(cuda::NvmlPci, bus)));
static_assert(isNumber("offsetof(nvmlPciInfo_t, device)", offsetof(cuda::NvmlPci, device)));
static_assert(isNumber("offsetof(nvmlPciInfo_t, busId)", offsetof(cuda::NvmlPci, busId)));
static_assert(isNumber("sizeof(nvmlFieldValue_t)", sizeof(cuda::NvmlField)));
static_assert(isNumber("offsetof(nvmlFieldValue_t, fieldId)", offsetof(cuda::NvmlField, id)));
static_assert(isNumber("offsetof(nvmlFieldValue_t, scopeId)", offsetof(cuda::NvmlField, scope)));
static_assert(isNumber("offsetof(nvmlFieldValue_t, valueType)", offsetof(cuda::NvmlField, type)));
static_assert(isNumber("offsetof(nvmlFieldValue_t, nvmlReturn)",
                       offsetof(cuda::NvmlField, status)));
static_assert(isNumber("offsetof(nvmlFieldValue_t, value)", offsetof(cuda::NvmlField, value)));
static_assert(isNumber("sizeof(nvmlUtilization_t)", sizeof(cuda::NvmlUtilization)));
static_assert(isNumber("offsetof(nvmlUtilization_t, gpu)", offsetof(cuda::NvmlUtilization, gpu)));
static_assert(isNumber("offsetof(nvmlUtilization_t, memory)",
                       offsetof(cuda::NvmlUtilization, memory)));
static_assert(isNumber("sizeof(nvmlEventData_t)", sizeof(cuda::NvmlEvent)));
static_assert(isNumber("offsetof(nvmlEventData_t, device)", offsetof(cuda::NvmlEvent, device)));
static_assert(isNumber("offsetof(nvmlEventData_t, eventType)", offsetof(cuda::NvmlEvent, type)));
static_assert(isNumber("offsetof(nvmlEventData_t, eventData)", offsetof(cuda::NvmlEvent, data)));
static_assert(isNumber("nvmlEventTypeXidCriticalError", cuda::nvml::kXidEvents));
static_assert(isNumber("NVML_SUCCESS", cuda::kNvmlSuccess));
static_assert(isNumber("NVML_CLOCK_SM", cuda::nvml::kSmClock));
static_assert(isNumber("NVML_CLOCK_MEM", cuda::nvml::kMemoryClock));
static_assert(isNumber("NVML_TEMPERATURE_GPU", cuda::nvml::kGpuSensor));
static_assert(isNumber("NVML_AFFINITY_SCOPE_NODE", cuda::nvml::kNearestNode));
static_assert(isNumber("NVML_MEMORY_ERROR_TYPE_CORRECTED", cuda::nvml::kCorrected));
static_assert(isNumber("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", cuda::nvml::kUncorrected));
static_assert(isNumber("NVML_VOLATILE_ECC", cuda::nvml::kSinceDriverLoad));
static_assert(isNumber("NVML_NVLINK_DEVICE_TYPE_SWITCH", cuda::nvml::kRemoteSwitch));
static_assert(isNumber("NVML_NVLINK_ERROR_COUNT", cuda::nvml::kLinkErrorCounters));
static_assert(isNumber("NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON", cuda::nvml::kFieldCommonLinkSpeed));
static_assert(isNumber("NVML_FI_DEV_NVLINK_GET_SPEED", cuda::nvml::kFieldLinkSpeed));
static_assert(isNumber("NVML_FI_DEV_C2C_LINK_COUNT", cuda::nvml::kFieldC2cLinkCount));
static_assert(isNumber("NVML_FI_DEV_C2C_LINK_GET_STATUS", cuda::nvml::kFieldC2cLinkStatus));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS",
                       cuda::nvml::kLinkErrorFields[0]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS",
                       cuda::nvml::kLinkErrorFields[1]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", cuda::nvml::kLinkErrorFields[2]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS",
                       cuda::nvml::kLinkErrorFields[3]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS",
                       cuda::nvml::kLinkErrorFields[4]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
                       cuda::nvml::kLinkErrorFields[5]));
static_assert(isNumber("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
                       cuda::nvml::kLinkErrorFields[6]));
static_assert(isNumber("NVML_VALUE_TYPE_DOUBLE", cuda::nvml::kDouble));
static_assert(isNumber("NVML_VALUE_TYPE_UNSIGNED_INT", cuda::nvml::kUnsigned));
static_assert(isNumber("NVML_VALUE_TYPE_UNSIGNED_LONG", cuda::nvml::kUnsignedLong));
static_assert(isNumber("NVML_VALUE_TYPE_UNSIGNED_LONG_LONG", cuda::nvml::kUnsignedLongLong));
static_assert(isNumber("NVML_VALUE_TYPE_SIGNED_LONG_LONG", cuda::nvml::kLongLong));
static_assert(isNumber("NVML_VALUE_TYPE_SIGNED_INT", cuda::nvml::kInt));
static_assert(isNumber("NVML_VALUE_TYPE_UNSIGNED_SHORT", cuda::nvml::kUnsignedShort));
static_assert(isNumber("NVML_TOPOLOGY_INTERNAL", cuda::nvml::kSameBoard));
static_assert(isNumber("NVML_TOPOLOGY_SINGLE", cuda::nvml::kOneSwitch));
static_assert(isNumber("NVML_TOPOLOGY_MULTIPLE", cuda::nvml::kManySwitches));
static_assert(isNumber("NVML_TOPOLOGY_HOSTBRIDGE", cuda::nvml::kHostBridge));
static_assert(isNumber("NVML_TOPOLOGY_NODE", cuda::nvml::kSameNode));
static_assert(isNumber("NVML_TOPOLOGY_SYSTEM", cuda::nvml::kSystem));
static_assert(isNumber("nvmlClocksThrottleReasonSwPowerCap", cuda::nvml::kClockReasons[0].first));
static_assert(isNumber("nvmlClocksThrottleReasonHwSlowdown", cuda::nvml::kClockReasons[1].first));
static_assert(isNumber("nvmlClocksThrottleReasonSyncBoost", cuda::nvml::kClockReasons[2].first));
static_assert(isNumber("nvmlClocksThrottleReasonSwThermalSlowdown",
                       cuda::nvml::kClockReasons[3].first));
static_assert(isNumber("nvmlClocksThrottleReasonHwThermalSlowdown",
                       cuda::nvml::kClockReasons[4].first));
static_assert(isNumber("nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
                       cuda::nvml::kClockReasons[5].first));

// Older headers lack some of the functions.
#if defined(GRADLINK_NVML_HEADERS) && NVML_API_VERSION >= 13
#define GRADLINK_SAME(symbol, member, arguments)                                                \
  static_assert(Signature<decltype(&::symbol)>::text() == signatureOf(kNvmlFunctions, #symbol), \
                "the prototype of " #symbol);
GRADLINK_NVML_FUNCTIONS(GRADLINK_SAME)
#undef GRADLINK_SAME
static_assert(isNumber("sizeof(nvmlPciInfo_t)", sizeof(nvmlPciInfo_t)));
static_assert(isNumber("sizeof(nvmlFieldValue_t)", sizeof(nvmlFieldValue_t)));
static_assert(isNumber("NVML_NVLINK_ERROR_COUNT", NVML_NVLINK_ERROR_COUNT));
#endif

TEST(NvmlAbi, IsThatOfTheRecordedHeaders) {
  EXPECT_EQ(signatureOf(kNvmlFunctions, "nvmlInit_v2"), "i4()");
  EXPECT_EQ(numberOf(kNvmlNumbers, "NVML_TOPOLOGY_SYSTEM"), cuda::nvml::kSystem);
}

}  // namespace
}  // namespace gradlink::test
