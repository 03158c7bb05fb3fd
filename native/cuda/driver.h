// The CUDA driver as a table of functions, looked up at first use in libcuda.so.1 (or the file in
// GRADLINK_CUDA_LIBRARY). Building and loading need nothing of CUDA.
//
// Types and constants have the driver's layout. Device addresses are void*: unified addressing
// makes them unique in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gradlink::cuda {

using Status = int;  // CUresult
using DeviceHandle = int;
using Address = std::uint64_t;  // CUdeviceptr
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using GraphHandle = struct GraphTag*;
using GraphExecHandle = struct GraphExecTag*;

struct Uuid {
  unsigned char bytes[16];
};

inline constexpr Status kSuccess = 0;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kDeviceUnavailable = 46;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidDevice = 101;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kUncorrectable = 214;
inline constexpr Status kInvalidPtx = 218;
inline constexpr Status kNoJitCompiler = 221;
inline constexpr Status kUnsupportedPtx = 222;
inline constexpr Status kJitDisabled = 223;
inline constexpr Status kNotReady = 600;
inline constexpr Status kPeerAccessAlreadyEnabled = 704;
inline constexpr Status kPeerAccessNotEnabled = 705;
inline constexpr Status kTooManyPeers = 711;

/// X(exported name, member, argument types). A driver without one of these is refused as too old.
#define GRADLINK_CUDA_REQUIRED(X)                                                          \
  X(cuInit, init, (unsigned))                                                              \
  X(cuDriverGetVersion, driverVersion, (int*))                                             \
  X(cuGetErrorName, errorName, (Status, const char**))                                     \
  X(cuGetErrorString, errorString, (Status, const char**))                                 \
  X(cuDeviceGetCount, deviceCount, (int*))                                                 \
  X(cuDeviceGet, deviceGet, (DeviceHandle*, int))                                          \
  X(cuDeviceGetName, deviceName, (char*, int, DeviceHandle))                               \
  X(cuDeviceTotalMem_v2, deviceTotalMem, (std::size_t*, DeviceHandle))                     \
  X(cuDeviceGetAttribute, deviceAttribute, (int*, int, DeviceHandle))                      \
  X(cuDeviceGetPCIBusId, devicePciBusId, (char*, int, DeviceHandle))                       \
  X(cuDevicePrimaryCtxRetain, primaryContextRetain, (ContextHandle*, DeviceHandle))        \
  X(cuCtxSetCurrent, setCurrent, (ContextHandle))                                          \
  X(cuCtxGetCurrent, getCurrent, (ContextHandle*))                                         \
  X(cuCtxSynchronize, contextSynchronize, ())                                              \
  X(cuDeviceCanAccessPeer, canAccessPeer, (int*, DeviceHandle, DeviceHandle))              \
  X(cuDeviceGetP2PAttribute, peerAttribute, (int*, int, DeviceHandle, DeviceHandle))       \
  X(cuCtxEnablePeerAccess, enablePeerAccess, (ContextHandle, unsigned))                    \
  X(cuCtxDisablePeerAccess, disablePeerAccess, (ContextHandle))                            \
  X(cuMemGetInfo_v2, memInfo, (std::size_t*, std::size_t*))                                \
  X(cuMemAlloc_v2, memAlloc, (Address*, std::size_t))                                      \
  X(cuMemFree_v2, memFree, (Address))                                                      \
  X(cuMemHostAlloc, hostAlloc, (void**, std::size_t, unsigned))                            \
  X(cuMemFreeHost, hostFree, (void*))                                                      \
  X(cuMemcpyAsync, copyAsync, (Address, Address, std::size_t, StreamHandle))               \
  X(cuMemcpyPeerAsync, copyPeerAsync,                                                      \
    (Address, ContextHandle, Address, ContextHandle, std::size_t, StreamHandle))           \
  X(cuMemsetD8Async, fillBytesAsync, (Address, unsigned char, std::size_t, StreamHandle))  \
  X(cuStreamCreate, streamCreate, (StreamHandle*, unsigned))                               \
  X(cuStreamDestroy_v2, streamDestroy, (StreamHandle))                                     \
  X(cuStreamSynchronize, streamSynchronize, (StreamHandle))                                \
  X(cuStreamQuery, streamQuery, (StreamHandle))                                            \
  X(cuStreamWaitEvent, streamWaitEvent, (StreamHandle, EventHandle, unsigned))             \
  X(cuEventCreate, eventCreate, (EventHandle*, unsigned))                                  \
  X(cuEventRecord, eventRecord, (EventHandle, StreamHandle))                               \
  X(cuEventQuery, eventQuery, (EventHandle))                                               \
  X(cuEventElapsedTime, eventElapsedTime, (float*, EventHandle, EventHandle))              \
  X(cuEventDestroy_v2, eventDestroy, (EventHandle))                                        \
  X(cuModuleLoadData, moduleLoadData, (ModuleHandle*, const void*))                        \
  X(cuModuleGetFunction, moduleGetFunction, (FunctionHandle*, ModuleHandle, const char*))  \
  X(cuModuleUnload, moduleUnload, (ModuleHandle))                                          \
  X(cuLaunchKernel, launchKernel,                                                          \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     StreamHandle, void**, void**))

/// Null if the driver lacks it: check before use.
#define GRADLINK_CUDA_OPTIONAL(X)                                                               \
  X(cuDeviceGetUuid_v2, deviceUuid, (Uuid*, DeviceHandle))                                      \
  X(cuDeviceGetUuid, deviceUuidOld, (Uuid*, DeviceHandle))                                      \
  X(cuFuncLoad, functionLoad, (FunctionHandle))                                                 \
  X(cuModuleLoadDataEx, moduleLoadDataEx, (ModuleHandle*, const void*, unsigned, int*, void**)) \
  X(cuStreamBeginCapture_v2, beginCapture, (StreamHandle, int))                                 \
  X(cuStreamEndCapture, endCapture, (StreamHandle, GraphHandle*))                               \
  X(cuGraphInstantiateWithFlags, graphInstantiate,                                              \
    (GraphExecHandle*, GraphHandle, unsigned long long))                                        \
  X(cuGraphLaunch, graphLaunch, (GraphExecHandle, StreamHandle))                                \
  X(cuGraphExecDestroy, graphExecDestroy, (GraphExecHandle))                                    \
  X(cuGraphDestroy, graphDestroy, (GraphHandle))

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters take none.
#define GRADLINK_MEMBER(symbol, member, arguments) Status(*member) arguments = nullptr;
  GRADLINK_CUDA_REQUIRED(GRADLINK_MEMBER)
  GRADLINK_CUDA_OPTIONAL(GRADLINK_MEMBER)
#undef GRADLINK_MEMBER
  std::string file;
  /// 13000 is CUDA 13.0.
  int version = 0;

  /// Loads and initializes at the first call; later calls return the same driver or throw the same
  /// Error(backendUnavailable): which file was searched where, or the missing symbol or device.
  static const Driver& get();
};

/// Throws an Error with the activity and the driver's text: outOfMemory or else system.
void check(Status, const std::string& doing);

/// "CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)".
std::string statusText(Status);

inline Address addressOf(const void* memory) { return reinterpret_cast<Address>(memory); }

}  // namespace gradlink::cuda
