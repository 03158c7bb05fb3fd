// NVML's ABI as our table has it, against what its headers of 11.7 to 13.3 said when they were
// recorded and, where this machine has nvml.h, against that: all of it at compile time.
#include <gtest/gtest.h>

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

#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kNvmlFunctions, #symbol, cuda::NvmlTable::member)
GRADLINK_NVML_FUNCTIONS(GRADLINK_SAME)
#undef GRADLINK_SAME

#define GRADLINK_IS(name, ours) GRADLINK_IS_IN(kNvmlNumbers, name, ours)
#define GRADLINK_AT(type, member, of, ours) \
  GRADLINK_IS("offsetof(" #type ", " #member ")", offsetof(of, ours))

GRADLINK_IS("sizeof(nvmlPciInfo_t)", sizeof(cuda::NvmlPci));
GRADLINK_AT(nvmlPciInfo_t, busIdLegacy, cuda::NvmlPci, shortBusId);
GRADLINK_AT(nvmlPciInfo_t, domain, cuda::NvmlPci, domain);
GRADLINK_AT(nvmlPciInfo_t, bus, cuda::NvmlPci, bus);
GRADLINK_AT(nvmlPciInfo_t, device, cuda::NvmlPci, device);
GRADLINK_AT(nvmlPciInfo_t, busId, cuda::NvmlPci, busId);
GRADLINK_IS("sizeof(nvmlFieldValue_t)", sizeof(cuda::NvmlField));
GRADLINK_AT(nvmlFieldValue_t, fieldId, cuda::NvmlField, id);
GRADLINK_AT(nvmlFieldValue_t, scopeId, cuda::NvmlField, scope);
GRADLINK_AT(nvmlFieldValue_t, valueType, cuda::NvmlField, type);
GRADLINK_AT(nvmlFieldValue_t, nvmlReturn, cuda::NvmlField, status);
GRADLINK_AT(nvmlFieldValue_t, value, cuda::NvmlField, value);
GRADLINK_IS("sizeof(nvmlUtilization_t)", sizeof(cuda::NvmlUtilization));
GRADLINK_AT(nvmlUtilization_t, gpu, cuda::NvmlUtilization, gpu);
GRADLINK_AT(nvmlUtilization_t, memory, cuda::NvmlUtilization, memory);
GRADLINK_IS("sizeof(nvmlEventData_t)", sizeof(cuda::NvmlEvent));
GRADLINK_AT(nvmlEventData_t, device, cuda::NvmlEvent, device);
GRADLINK_AT(nvmlEventData_t, eventType, cuda::NvmlEvent, type);
GRADLINK_AT(nvmlEventData_t, eventData, cuda::NvmlEvent, data);
GRADLINK_IS("nvmlEventTypeXidCriticalError", cuda::nvml::kXidEvents);
GRADLINK_IS("NVML_SUCCESS", cuda::kNvmlSuccess);
GRADLINK_IS("NVML_CLOCK_SM", cuda::nvml::kSmClock);
GRADLINK_IS("NVML_CLOCK_MEM", cuda::nvml::kMemoryClock);
GRADLINK_IS("NVML_TEMPERATURE_GPU", cuda::nvml::kGpuSensor);
GRADLINK_IS("NVML_AFFINITY_SCOPE_NODE", cuda::nvml::kNearestNode);
GRADLINK_IS("NVML_MEMORY_ERROR_TYPE_CORRECTED", cuda::nvml::kCorrected);
GRADLINK_IS("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", cuda::nvml::kUncorrected);
GRADLINK_IS("NVML_VOLATILE_ECC", cuda::nvml::kSinceDriverLoad);
GRADLINK_IS("NVML_NVLINK_DEVICE_TYPE_SWITCH", cuda::nvml::kRemoteSwitch);
GRADLINK_IS("NVML_NVLINK_ERROR_COUNT", cuda::nvml::kLinkErrorCounters);
GRADLINK_IS("NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON", cuda::nvml::kFieldCommonLinkSpeed);
GRADLINK_IS("NVML_FI_DEV_NVLINK_GET_SPEED", cuda::nvml::kFieldLinkSpeed);
GRADLINK_IS("NVML_FI_DEV_C2C_LINK_COUNT", cuda::nvml::kFieldC2cLinkCount);
GRADLINK_IS("NVML_FI_DEV_C2C_LINK_GET_STATUS", cuda::nvml::kFieldC2cLinkStatus);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", cuda::nvml::kLinkErrorFields[0]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", cuda::nvml::kLinkErrorFields[1]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", cuda::nvml::kLinkErrorFields[2]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS", cuda::nvml::kLinkErrorFields[3]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS", cuda::nvml::kLinkErrorFields[4]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
            cuda::nvml::kLinkErrorFields[5]);
GRADLINK_IS("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
            cuda::nvml::kLinkErrorFields[6]);
GRADLINK_IS("NVML_VALUE_TYPE_DOUBLE", cuda::nvml::kDouble);
GRADLINK_IS("NVML_VALUE_TYPE_UNSIGNED_INT", cuda::nvml::kUnsigned);
GRADLINK_IS("NVML_VALUE_TYPE_UNSIGNED_LONG", cuda::nvml::kUnsignedLong);
GRADLINK_IS("NVML_VALUE_TYPE_UNSIGNED_LONG_LONG", cuda::nvml::kUnsignedLongLong);
GRADLINK_IS("NVML_VALUE_TYPE_SIGNED_LONG_LONG", cuda::nvml::kLongLong);
GRADLINK_IS("NVML_VALUE_TYPE_SIGNED_INT", cuda::nvml::kInt);
GRADLINK_IS("NVML_VALUE_TYPE_UNSIGNED_SHORT", cuda::nvml::kUnsignedShort);
GRADLINK_IS("NVML_TOPOLOGY_INTERNAL", cuda::nvml::kSameBoard);
GRADLINK_IS("NVML_TOPOLOGY_SINGLE", cuda::nvml::kOneSwitch);
GRADLINK_IS("NVML_TOPOLOGY_MULTIPLE", cuda::nvml::kManySwitches);
GRADLINK_IS("NVML_TOPOLOGY_HOSTBRIDGE", cuda::nvml::kHostBridge);
GRADLINK_IS("NVML_TOPOLOGY_NODE", cuda::nvml::kSameNode);
GRADLINK_IS("NVML_TOPOLOGY_SYSTEM", cuda::nvml::kSystem);
GRADLINK_IS("nvmlClocksThrottleReasonSwPowerCap", cuda::nvml::kClockReasons[0].first);
GRADLINK_IS("nvmlClocksThrottleReasonHwSlowdown", cuda::nvml::kClockReasons[1].first);
GRADLINK_IS("nvmlClocksThrottleReasonSyncBoost", cuda::nvml::kClockReasons[2].first);
GRADLINK_IS("nvmlClocksThrottleReasonSwThermalSlowdown", cuda::nvml::kClockReasons[3].first);
GRADLINK_IS("nvmlClocksThrottleReasonHwThermalSlowdown", cuda::nvml::kClockReasons[4].first);
GRADLINK_IS("nvmlClocksThrottleReasonHwPowerBrakeSlowdown", cuda::nvml::kClockReasons[5].first);

// Older headers lack some of the functions.
#if defined(GRADLINK_NVML_HEADERS) && NVML_API_VERSION >= 13
#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kNvmlFunctions, #symbol, &::symbol)
GRADLINK_NVML_FUNCTIONS(GRADLINK_SAME)
#undef GRADLINK_SAME
GRADLINK_IS("sizeof(nvmlPciInfo_t)", sizeof(nvmlPciInfo_t));
GRADLINK_IS("sizeof(nvmlFieldValue_t)", sizeof(nvmlFieldValue_t));
GRADLINK_IS("NVML_NVLINK_ERROR_COUNT", NVML_NVLINK_ERROR_COUNT);
#endif

TEST(NvmlAbi, IsThatOfTheRecordedHeaders) {
  EXPECT_EQ(signatureOf(kNvmlFunctions, "nvmlInit_v2"), "i4()");
  EXPECT_EQ(numberOf(kNvmlNumbers, "NVML_TOPOLOGY_SYSTEM"), cuda::nvml::kSystem);
}

}  // namespace
}  // namespace gradlink::test
