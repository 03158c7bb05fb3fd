// Numbers of cuda.h and nvml.h; native/test/abi compares them with the headers' at compile time.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace gradlink::cuda {

// CUdevice_attribute.
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeMode = 20;
inline constexpr int kMemoryClockKHz = 36;
inline constexpr int kMemoryBusBits = 37;
inline constexpr int kL2Bytes = 38;
inline constexpr int kThreadsOfMultiprocessor = 39;
inline constexpr int kCopyEngines = 40;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
// CUcomputemode.
inline constexpr int kProhibited = 2;
inline constexpr int kExclusiveProcess = 3;
// CUdevice_P2PAttribute.
inline constexpr int kPerformanceRank = 1;
// Flags of streams, events, captures and page-locked memory.
inline constexpr unsigned kNonBlocking = 1;
inline constexpr unsigned kDisableTiming = 2;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostMapped = 2;

namespace nvml {

// nvmlClockType_t.
inline constexpr int kSmClock = 1;
inline constexpr int kMemoryClock = 2;
// nvmlTemperatureSensors_t.
inline constexpr int kGpuSensor = 0;
// nvmlAffinityScope_t.
inline constexpr unsigned kNearestNode = 0;
// nvmlMemoryErrorType_t and nvmlEccCounterType_t.
inline constexpr int kCorrected = 0;
inline constexpr int kUncorrected = 1;
inline constexpr int kSinceDriverLoad = 0;
// The most that NVML supports; calls for links that a GPU lacks fail.
inline constexpr unsigned kMostLinks = 36;
// nvmlIntNvLinkDeviceType_t.
inline constexpr int kRemoteSwitch = 2;
// nvmlNvLinkErrorCounter_t: replays, recoveries, CRC errors of flits and of data, ECC errors.
inline constexpr int kLinkErrorCounters = 5;

// Field ids of nvmlDeviceGetFieldValues.
inline constexpr unsigned kFieldCommonLinkSpeed = 90;  // MB/s
inline constexpr unsigned kFieldLinkSpeed = 164;       // MB/s
inline constexpr unsigned kFieldC2cLinkCount = 170;
inline constexpr unsigned kFieldC2cLinkStatus = 171;
// NVLink 5 has other counters than replays and CRC errors: malformed packets, buffer overruns,
// three kinds of receive errors, link integrity errors and failed recoveries.
inline constexpr std::array<unsigned, 7> kLinkErrorFields{206, 207, 208, 209, 210, 211, 214};

// nvmlValueType_t.
inline constexpr int kDouble = 0;
inline constexpr int kUnsigned = 1;
inline constexpr int kUnsignedLong = 2;
inline constexpr int kUnsignedLongLong = 3;
inline constexpr int kLongLong = 4;
inline constexpr int kInt = 5;
inline constexpr int kUnsignedShort = 6;

// nvmlGpuTopologyLevel_t.
inline constexpr int kSameBoard = 0;
inline constexpr int kOneSwitch = 10;
inline constexpr int kManySwitches = 20;
inline constexpr int kHostBridge = 30;
inline constexpr int kSameNode = 40;
inline constexpr int kSystem = 50;

// nvmlEventType...: XID errors.
inline constexpr unsigned long long kXidEvents = 0x8;

/// nvmlClocksEventReasons with the names that GpuHealth uses.
inline constexpr std::pair<std::uint64_t, const char*> kClockReasons[] = {
    {0x4, "softwarePowerCap"}, {0x8, "hardwareSlowdown"}, {0x10, "syncBoost"},
    {0x20, "softwareThermal"}, {0x40, "hardwareThermal"}, {0x80, "hardwarePowerBrake"},
};

}  // namespace nvml

}  // namespace gradlink::cuda
