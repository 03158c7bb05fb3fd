// The driver's ABI as our tables have it, against what its header said when it was recorded, and,
// where this machine has cuda.h, against that: all of it at compile time.
#include <gtest/gtest.h>

#include "cuda/abi_numbers.h"
#include "cuda/driver.h"
#include "test/abi/cuda.h"

#if __has_include(<cuda.h>) && defined(GRADLINK_CUDA_HEADERS)
#include <cuda.h>
#define GRADLINK_HAS_CUDA_H
#endif

namespace gradlink::test {
namespace {

using recorded::kCudaFunctions;
using recorded::kCudaNumbers;

#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kCudaFunctions, #symbol, cuda::Driver::member)
GRADLINK_CUDA_REQUIRED(GRADLINK_SAME)
GRADLINK_CUDA_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME

#define GRADLINK_IS(name, ours) GRADLINK_IS_IN(kCudaNumbers, name, ours)

GRADLINK_IS("sizeof(CUdevice)", sizeof(cuda::DeviceHandle));
GRADLINK_IS("sizeof(CUdeviceptr)", sizeof(cuda::Address));
GRADLINK_IS("sizeof(CUuuid)", sizeof(cuda::Uuid));
GRADLINK_IS("CUDA_SUCCESS", cuda::kSuccess);
GRADLINK_IS("CUDA_ERROR_OUT_OF_MEMORY", cuda::kOutOfMemory);
GRADLINK_IS("CUDA_ERROR_NO_DEVICE", cuda::kNoDevice);
GRADLINK_IS("CUDA_ERROR_NO_BINARY_FOR_GPU", cuda::kNoBinaryForGpu);
GRADLINK_IS("CUDA_ERROR_INVALID_PTX", cuda::kInvalidPtx);
GRADLINK_IS("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", cuda::kNoJitCompiler);
GRADLINK_IS("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", cuda::kUnsupportedPtx);
GRADLINK_IS("CUDA_ERROR_JIT_COMPILATION_DISABLED", cuda::kJitDisabled);
GRADLINK_IS("CUDA_ERROR_DEVICE_UNAVAILABLE", cuda::kDeviceUnavailable);
GRADLINK_IS("CUDA_ERROR_INVALID_DEVICE", cuda::kInvalidDevice);
GRADLINK_IS("CUDA_ERROR_ECC_UNCORRECTABLE", cuda::kUncorrectable);
GRADLINK_IS("CUDA_ERROR_NOT_READY", cuda::kNotReady);
GRADLINK_IS("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", cuda::kPeerAccessAlreadyEnabled);
GRADLINK_IS("CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", cuda::kPeerAccessNotEnabled);
GRADLINK_IS("CUDA_ERROR_TOO_MANY_PEERS", cuda::kTooManyPeers);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", cuda::kMultiprocessorCount);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_COMPUTE_MODE", cuda::kComputeMode);
GRADLINK_IS("CU_COMPUTEMODE_PROHIBITED", cuda::kProhibited);
GRADLINK_IS("CU_COMPUTEMODE_EXCLUSIVE_PROCESS", cuda::kExclusiveProcess);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE", cuda::kMemoryClockKHz);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH", cuda::kMemoryBusBits);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE", cuda::kL2Bytes);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR", cuda::kThreadsOfMultiprocessor);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT", cuda::kCopyEngines);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", cuda::kCapabilityMajor);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", cuda::kCapabilityMinor);
GRADLINK_IS("CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK", cuda::kPerformanceRank);
GRADLINK_IS("CU_STREAM_NON_BLOCKING", cuda::kNonBlocking);
GRADLINK_IS("CU_EVENT_DISABLE_TIMING", cuda::kDisableTiming);
GRADLINK_IS("CU_MEMHOSTALLOC_PORTABLE", cuda::kHostPortable);
GRADLINK_IS("CU_MEMHOSTALLOC_DEVICEMAP", cuda::kHostMapped);
GRADLINK_IS("CU_STREAM_CAPTURE_MODE_RELAXED", cuda::kCaptureRelaxed);

#ifdef GRADLINK_HAS_CUDA_H
// A name without a version is a macro of the header for its newest one.
#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kCudaFunctions, #symbol, &::symbol)
GRADLINK_CUDA_REQUIRED(GRADLINK_SAME)
GRADLINK_CUDA_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME
GRADLINK_IS("sizeof(CUuuid)", sizeof(CUuuid));
GRADLINK_IS("CUDA_ERROR_TOO_MANY_PEERS", CUDA_ERROR_TOO_MANY_PEERS);
GRADLINK_IS("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
#endif

TEST(CudaAbi, IsThatOfTheHeaders) {
#ifdef GRADLINK_HAS_CUDA_H
  SUCCEED();
#else
  GTEST_SKIP() << "no cuda.h here: compared with what was recorded";
#endif
}

}  // namespace
}  // namespace gradlink::test
