// What the fake libnccl needs of the fake libcuda beyond the driver's ABI. The fake libcuda exports
// these; the fake libnccl looks them up in the library that GRADLINK_CUDA_LIBRARY names.
#pragma once

#include <cstddef>

namespace gradlink::fake {

/// Runs on a stream's thread in the stream's order. Gets the stream's simulated time in seconds and
/// returns that at the work's end, not earlier. May block until another stream's work has come.
using StreamWork = double (*)(void* data, double now);
/// Called once, when the work will not run again: after it ran, or when the last graph that holds
/// it is gone.
using StreamRelease = void (*)(void* data);

/// int gradlinkFakeEnqueue(CUstream, StreamWork, StreamRelease, void* data): queues work, or
/// captures it where the stream is being captured. A CUresult.
using EnqueueOnStream = int (*)(void* stream, StreamWork, StreamRelease, void* data);
/// int gradlinkFakeOwner(const void* from, size_t bytes): the ordinal of the device that owns the
/// whole range, -1 for pinned host memory, -2 for anything else.
using OwnerOfMemory = int (*)(const void* from, std::size_t bytes);
/// int gradlinkFakeStreamDevice(CUstream): the ordinal of its device, -2 for what is no stream.
using DeviceOfStream = int (*)(void* stream);
/// double gradlinkFakeLinkRate(int from, int to): bytes a second of one direction; `nominal`
/// ignores GRADLINK_FAKE_LINKS.
using RateOfLink = double (*)(int from, int to, int nominal);

inline constexpr const char* kEnqueueOnStream = "gradlinkFakeEnqueue";
inline constexpr const char* kOwnerOfMemory = "gradlinkFakeOwner";
inline constexpr const char* kDeviceOfStream = "gradlinkFakeStreamDevice";
inline constexpr const char* kRateOfLink = "gradlinkFakeLinkRate";

}  // namespace gradlink::fake
