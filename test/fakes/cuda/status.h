// The driver's status codes that the fake gives, and its types.
#pragma once

#include "cuda/driver.h"

namespace gradlink::fake {

using cuda::Address;
using cuda::ContextHandle;
using cuda::DeviceHandle;
using cuda::EventHandle;
using cuda::FunctionHandle;
using cuda::GraphExecHandle;
using cuda::GraphHandle;
using cuda::ModuleHandle;
using cuda::Status;
using cuda::StreamHandle;
using cuda::Uuid;

/// X(constant, number, name, text).
#define GRADLINK_FAKE_STATUS(X)                                                                    \
  X(kOk, 0, "CUDA_SUCCESS", "no error")                                                            \
  X(kInvalidValue, 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                              \
  X(kOutOfMemory, 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                                  \
  X(kNotInitialized, 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                      \
  X(kStubLibrary, 34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library")                  \
  X(kDeviceUnavailable, 46, "CUDA_ERROR_DEVICE_UNAVAILABLE",                                       \
    "CUDA-capable device(s) is/are busy or unavailable")                                           \
  X(kNoDevice, 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")                  \
  X(kInvalidDevice, 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")                    \
  X(kInvalidImage, 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid")              \
  X(kInvalidContext, 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")                  \
  X(kNoBinaryForGpu, 209, "CUDA_ERROR_NO_BINARY_FOR_GPU",                                          \
    "no kernel image is available for execution on the device")                                    \
  X(kUncorrectable, 214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered")    \
  X(kPeerUnsupported, 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",                                   \
    "peer access is not supported between these two devices")                                      \
  X(kInvalidPtx, 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed")                    \
  X(kNoJitCompiler, 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",                                      \
    "PTX JIT compiler library not found")                                                          \
  X(kUnsupportedPtx, 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",                                    \
    "the provided PTX was compiled with an unsupported toolchain.")                                \
  X(kJitDisabled, 223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled")  \
  X(kInvalidHandle, 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                   \
  X(kNotFound, 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")                              \
  X(kNotReady, 600, "CUDA_ERROR_NOT_READY", "device not ready")                                    \
  X(kIllegalAddress, 700, "CUDA_ERROR_ILLEGAL_ADDRESS",                                            \
    "an illegal memory access was encountered")                                                    \
  X(kPeerEnabled, 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled") \
  X(kPeerNotEnabled, 705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",                                    \
    "peer access has not been enabled")                                                            \
  X(kTooManyPeers, 711, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted")           \
  X(kMisalignedAddress, 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address")                \
  X(kLaunchFailed, 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")                  \
  X(kNotPermitted, 800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted")                     \
  X(kNotSupported, 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")                     \
  X(kDriverMismatch, 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",                                     \
    "system has unsupported display driver / cuda driver combination")                             \
  X(kCaptureUnsupported, 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",                             \
    "operation not permitted when stream is capturing")                                            \
  X(kCaptureInvalidated, 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",                             \
    "operation failed due to a previous error during capture")                                     \
  X(kCaptureMerge, 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE",                                         \
    "operation would result in a merge of separate capture sequences")                             \
  X(kCaptureUnmatched, 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",                                 \
    "capture was not ended in the same stream as it began")                                        \
  X(kCaptureUnjoined, 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",                                   \
    "capturing stream has unjoined work")                                                          \
  X(kCaptureIsolation, 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",                                 \
    "dependency created on uncaptured work in another stream")                                     \
  X(kCapturedEvent, 907, "CUDA_ERROR_CAPTURED_EVENT",                                              \
    "operation not permitted on an event last recorded in a capturing stream")                     \
  X(kCaptureWrongThread, 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",                            \
    "attempt to terminate a thread-local capture sequence from another thread")

#define GRADLINK_FAKE_CONSTANT(constant, number, name, text) \
  inline constexpr Status constant = number;
GRADLINK_FAKE_STATUS(GRADLINK_FAKE_CONSTANT)
#undef GRADLINK_FAKE_CONSTANT

}  // namespace gradlink::fake
