// NCCL's types and constants in its binary layout, so building needs no NCCL.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::nccl::abi {

using Result = int;  // ncclResult_t
using CommHandle = struct CommTag*;
using WindowHandle = struct WindowTag*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kUnhandledCudaError = 1;
inline constexpr Result kSystemError = 2;
inline constexpr Result kInternalError = 3;
inline constexpr Result kInvalidArgument = 4;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;
inline constexpr Result kInProgress = 7;
inline constexpr Result kTimeout = 8;

/// ncclUniqueId, passed by value.
struct UniqueId {
  char bytes[128];
};

inline constexpr int kUndefined = INT_MIN;
inline constexpr std::uint32_t kConfigMagic = 0xcafebeef;
/// Config's version: older libraries read the part they know, newer ones add their defaults.
inline constexpr std::uint32_t kConfigVersion = 23007;

/// ncclConfig_t as of kConfigVersion; the library chooses every field.
struct Config {
  std::size_t size = 96;
  std::uint32_t magic = kConfigMagic;
  std::uint32_t version = kConfigVersion;
  int blocking = kUndefined;
  int cgaClusterSize = kUndefined;
  int minCtas = kUndefined;
  int maxCtas = kUndefined;
  const char* netName = nullptr;
  int splitShare = kUndefined;
  int trafficClass = kUndefined;
  const char* commName = nullptr;
  int collnetEnable = kUndefined;
  int ctaPolicy = kUndefined;
  int shrinkShare = kUndefined;
  int nvlsCtas = kUndefined;
  int channelsPerNetPeer = kUndefined;
  int nvlinkCentricSched = kUndefined;
  int graphUsageMode = kUndefined;
  int numRmaCtx = kUndefined;
  int maxP2pPeers = kUndefined;
  int graphStreamOrdering = kUndefined;
};
static_assert(sizeof(Config) == 96 && offsetof(Config, blocking) == 16 &&
                  offsetof(Config, netName) == 32 && offsetof(Config, trafficClass) == 44 &&
                  offsetof(Config, commName) == 48 && offsetof(Config, nvlsCtas) == 68 &&
                  offsetof(Config, graphUsageMode) == 80 &&
                  offsetof(Config, graphStreamOrdering) == 92,
              "the layout of NCCL's configuration");

inline constexpr std::uint32_t kSimulationMagic = 0x74685283;

/// ncclSimInfo_t.
struct Simulation {
  std::size_t size = 24;
  std::uint32_t magic = kSimulationMagic;
  std::uint32_t version = kConfigVersion;
  /// Microseconds; negative if unknown.
  float estimatedTime = -1;
};
static_assert(sizeof(Simulation) == 24 && offsetof(Simulation, estimatedTime) == 16,
              "the layout of NCCL's simulation");

inline constexpr int kUint8Type = 1;

constexpr int typeOf(DType dtype) {
  // int16 is refused before (Ranks::checkType).
  constexpr int kTypes[kGpuDTypeCount] = {0, 1, 2, 3, 4, 5, 6, 9, 7, 8, 10, 11};
  return kTypes[static_cast<int>(dtype)];
}

/// The type for calls that only move elements. Before 2.28 the library refuses float8 on GPUs of
/// compute capability below 9.0 even then, and fails the communicator.
constexpr int movedAs(DType dtype) { return isFloat8(dtype) ? kUint8Type : typeOf(dtype); }

/// NCCL's max comes before its min. The average over one rank is its sum: the library refuses
/// float8 averages there (2.28.9, src/device/onerank.cu).
constexpr int opOf(ReduceOp op, int ranks) {
  constexpr int kOps[kReduceOpCount] = {0, 1, 3, 2, 4};
  if (op == ReduceOp::avg && ranks == 1) op = ReduceOp::sum;
  return kOps[static_cast<int>(op)];
}

/// ncclScalarHostImmediate: the factor of a scaled sum is read during the call.
inline constexpr int kHostScalar = 1;
inline constexpr int kWindowSymmetric = 1;

}  // namespace gradlink::nccl::abi
