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

#define GRADLINK_SAME(symbol, member, arguments)                                                 \
  static_assert(                                                                                 \
      Signature<decltype(cuda::Driver::member)>::text() == signatureOf(kCudaFunctions, #symbol), \
      "the prototype of " #symbol);
GRADLINK_CUDA_REQUIRED(GRADLINK_SAME)
GRADLINK_CUDA_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME

constexpr bool isNumber(std::string_view name, long long ours) {
  return numberOf(kCudaNumbers, name) == ours;
}

static_assert(isNumber("sizeof(CUdevice)", sizeof(cuda::DeviceHandle)));
static_assert(isNumber("sizeof(CUdeviceptr)", sizeof(cuda::Address)));
static_assert(isNumber("sizeof(CUuuid)", sizeof(cuda::Uuid)));
static_assert(isNumber("CUDA_SUCCESS", cuda::kSuccess));
static_assert(isNumber("CUDA_ERROR_OUT_OF_MEMORY", cuda::kOutOfMemory));
static_assert(isNumber("CUDA_ERROR_NO_DEVICE", cuda::kNoDevice));
static_assert(isNumber("CUDA_ERROR_NO_BINARY_FOR_GPU", cuda::kNoBinaryForGpu));
static_assert(isNumber("CUDA_ERROR_INVALID_PTX", cuda::kInvalidPtx));
static_assert(isNumber("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", cuda::kNoJitCompiler));
static_assert(isNumber("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", cuda::kUnsupportedPtx));
static_assert(isNumber("CUDA_ERROR_JIT_COMPILATION_DISABLED", cuda::kJitDisabled));
static_assert(isNumber("CUDA_ERROR_DEVICE_UNAVAILABLE", cuda::kDeviceUnavailable));
static_assert(isNumber("CUDA_ERROR_INVALID_DEVICE", cuda::kInvalidDevice));
static_assert(isNumber("CUDA_ERROR_ECC_UNCORRECTABLE", cuda::kUncorrectable));
static_assert(isNumber("CUDA_ERROR_NOT_READY", cuda::kNotReady));
static_assert(isNumber("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", cuda::kPeerAccessAlreadyEnabled));
static_assert(isNumber("CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", cuda::kPeerAccessNotEnabled));
static_assert(isNumber("CUDA_ERROR_TOO_MANY_PEERS", cuda::kTooManyPeers));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", cuda::kMultiprocessorCount));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_COMPUTE_MODE", cuda::kComputeMode));
static_assert(isNumber("CU_COMPUTEMODE_PROHIBITED", cuda::kProhibited));
static_assert(isNumber("CU_COMPUTEMODE_EXCLUSIVE_PROCESS", cuda::kExclusiveProcess));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE", cuda::kMemoryClockKHz));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH", cuda::kMemoryBusBits));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE", cuda::kL2Bytes));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR",
                       cuda::kThreadsOfMultiprocessor));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT", cuda::kCopyEngines));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", cuda::kCapabilityMajor));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", cuda::kCapabilityMinor));
static_assert(isNumber("CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK", cuda::kPerformanceRank));
static_assert(isNumber("CU_STREAM_NON_BLOCKING", cuda::kNonBlocking));
static_assert(isNumber("CU_EVENT_DISABLE_TIMING", cuda::kDisableTiming));
static_assert(isNumber("CU_MEMHOSTALLOC_PORTABLE", cuda::kHostPortable));
static_assert(isNumber("CU_MEMHOSTALLOC_DEVICEMAP", cuda::kHostMapped));
static_assert(isNumber("CU_STREAM_CAPTURE_MODE_RELAXED", cuda::kCaptureRelaxed));

#ifdef GRADLINK_HAS_CUDA_H
// A name without a version is a macro of the header for its newest one.
#define GRADLINK_SAME(symbol, member, arguments)                                                \
  static_assert(Signature<decltype(&::symbol)>::text() == signatureOf(kCudaFunctions, #symbol), \
                "the prototype of " #symbol);
GRADLINK_CUDA_REQUIRED(GRADLINK_SAME)
GRADLINK_CUDA_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME
static_assert(isNumber("sizeof(CUuuid)", sizeof(CUuuid)));
static_assert(isNumber("CUDA_ERROR_TOO_MANY_PEERS", CUDA_ERROR_TOO_MANY_PEERS));
static_assert(isNumber("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
                       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
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
