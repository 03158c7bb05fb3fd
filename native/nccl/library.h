// libnccl.so.2 as a table of functions, looked up at first use.
#pragma once

#include <cstddef>
#include <string>

#include "core/error.h"
#include "cuda/driver.h"
#include "nccl/abi.h"
#include "nccl/nccl.h"

namespace gradlink::nccl {

/// X(exported name, member, argument types). All exist since 2.14; otherwise it is refused.
#define GRADLINK_NCCL_REQUIRED(X)                                                              \
  X(ncclGetVersion, getVersion, (int*))                                                        \
  X(ncclGetUniqueId, getUniqueId, (abi::UniqueId*))                                            \
  X(ncclCommInitRankConfig, commInitRankConfig,                                                \
    (abi::CommHandle*, int, abi::UniqueId, int, abi::Config*))                                 \
  X(ncclCommFinalize, commFinalize, (abi::CommHandle))                                         \
  X(ncclCommDestroy, commDestroy, (abi::CommHandle))                                           \
  X(ncclCommAbort, commAbort, (abi::CommHandle))                                               \
  X(ncclCommGetAsyncError, commGetAsyncError, (abi::CommHandle, abi::Result*))                 \
  X(ncclGroupStart, groupStart, ())                                                            \
  X(ncclGroupEnd, groupEnd, ())                                                                \
  X(ncclAllReduce, allReduce,                                                                  \
    (const void*, void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))          \
  X(ncclReduce, reduce,                                                                        \
    (const void*, void*, std::size_t, int, int, int, abi::CommHandle, cuda::StreamHandle))     \
  X(ncclBroadcast, broadcast,                                                                  \
    (const void*, void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))          \
  X(ncclAllGather, allGather,                                                                  \
    (const void*, void*, std::size_t, int, abi::CommHandle, cuda::StreamHandle))               \
  X(ncclReduceScatter, reduceScatter,                                                          \
    (const void*, void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))          \
  X(ncclSend, send, (const void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle)) \
  X(ncclRecv, recv, (void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))

/// Null if the library lacks it: check before use.
#define GRADLINK_NCCL_OPTIONAL(X)                                                             \
  X(ncclCommInitRankScalable, commInitRankScalable,                                           \
    (abi::CommHandle*, int, int, int, abi::UniqueId*, abi::Config*))                          \
  X(ncclAlltoAll, allToAll,                                                                   \
    (const void*, void*, std::size_t, int, abi::CommHandle, cuda::StreamHandle))              \
  X(ncclGather, gather,                                                                       \
    (const void*, void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))         \
  X(ncclScatter, scatter,                                                                     \
    (const void*, void*, std::size_t, int, int, abi::CommHandle, cuda::StreamHandle))         \
  X(ncclGroupSimulateEnd, groupSimulateEnd, (abi::Simulation*))                               \
  X(ncclRedOpCreatePreMulSum, redOpCreatePreMulSum, (int*, void*, int, int, abi::CommHandle)) \
  X(ncclRedOpDestroy, redOpDestroy, (int, abi::CommHandle))                                   \
  X(ncclMemAlloc, memAlloc, (void**, std::size_t))                                            \
  X(ncclMemFree, memFree, (void*))                                                            \
  X(ncclCommRegister, commRegister, (abi::CommHandle, void*, std::size_t, void**))            \
  X(ncclCommDeregister, commDeregister, (abi::CommHandle, void*))                             \
  X(ncclCommWindowRegister, commWindowRegister,                                               \
    (abi::CommHandle, void*, std::size_t, abi::WindowHandle*, int))                           \
  X(ncclCommWindowDeregister, commWindowDeregister, (abi::CommHandle, abi::WindowHandle))

struct Library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters take none.
#define GRADLINK_MEMBER(symbol, member, arguments) abi::Result(*member) arguments = nullptr;
  GRADLINK_NCCL_REQUIRED(GRADLINK_MEMBER)
  GRADLINK_NCCL_OPTIONAL(GRADLINK_MEMBER)
#undef GRADLINK_MEMBER
  /// Both may be null.
  const char* (*getErrorString)(abi::Result) = nullptr;
  const char* (*getLastError)(abi::CommHandle) = nullptr;
  LibraryInfo info;

  /// Loads once; later calls return the same library or throw the same Error(backendUnavailable).
  static const Library& get();

  /// An Error for a result that is neither success nor in progress: the activity, NCCL's version,
  /// its name for the result, its last message, and the remedy.
  Error failure(abi::Result result, const std::string& doing) const;
};

inline bool isFailure(abi::Result result) {
  return result != abi::kSuccess && result != abi::kInProgress;
}

}  // namespace gradlink::nccl
