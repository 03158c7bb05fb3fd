// NCCL's ABI as our tables have it, against what its headers of 2.18 to 2.30 said when they were
// recorded and, where this machine has nccl.h, against that: at compile time.
#include <gtest/gtest.h>

#include "nccl/abi.h"
#include "nccl/library.h"
#include "test/abi/nccl.h"

#ifdef GRADLINK_NCCL_HEADERS
#include <nccl.h>
#endif

namespace gradlink::test {
namespace {

using nccl::abi::Config;
using nccl::abi::Simulation;
using recorded::kNcclFunctions;
using recorded::kNcclNumbers;

#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kNcclFunctions, #symbol, nccl::Library::member)
GRADLINK_NCCL_REQUIRED(GRADLINK_SAME)
GRADLINK_NCCL_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME

#define GRADLINK_IS(name, ours) GRADLINK_IS_IN(kNcclNumbers, name, ours)
#define GRADLINK_AT(type, member, of, ours) \
  GRADLINK_IS("offsetof(" #type ", " #member ")", offsetof(of, ours))

GRADLINK_IS("ncclSuccess", nccl::abi::kSuccess);
GRADLINK_IS("ncclUnhandledCudaError", nccl::abi::kUnhandledCudaError);
GRADLINK_IS("ncclSystemError", nccl::abi::kSystemError);
GRADLINK_IS("ncclInternalError", nccl::abi::kInternalError);
GRADLINK_IS("ncclInvalidArgument", nccl::abi::kInvalidArgument);
GRADLINK_IS("ncclInvalidUsage", nccl::abi::kInvalidUsage);
GRADLINK_IS("ncclRemoteError", nccl::abi::kRemoteError);
GRADLINK_IS("ncclInProgress", nccl::abi::kInProgress);
GRADLINK_IS("ncclTimeout", nccl::abi::kTimeout);
GRADLINK_IS("sizeof(ncclUniqueId)", sizeof(nccl::abi::UniqueId));
GRADLINK_IS("NCCL_CONFIG_UNDEF_INT", nccl::abi::kUndefined);
GRADLINK_IS("NCCL_API_MAGIC", nccl::abi::kConfigMagic);
GRADLINK_IS("NCCL_WIN_COLL_SYMMETRIC", nccl::abi::kWindowSymmetric);
GRADLINK_IS("ncclScalarHostImmediate", nccl::abi::kHostScalar);

GRADLINK_IS("ncclInt8", nccl::abi::typeOf(DType::int8));
GRADLINK_IS("ncclUint8", nccl::abi::typeOf(DType::uint8));
GRADLINK_IS("ncclInt32", nccl::abi::typeOf(DType::int32));
GRADLINK_IS("ncclUint32", nccl::abi::typeOf(DType::uint32));
GRADLINK_IS("ncclInt64", nccl::abi::typeOf(DType::int64));
GRADLINK_IS("ncclUint64", nccl::abi::typeOf(DType::uint64));
GRADLINK_IS("ncclFloat16", nccl::abi::typeOf(DType::float16));
GRADLINK_IS("ncclBfloat16", nccl::abi::typeOf(DType::bfloat16));
GRADLINK_IS("ncclFloat32", nccl::abi::typeOf(DType::float32));
GRADLINK_IS("ncclFloat64", nccl::abi::typeOf(DType::float64));
GRADLINK_IS("ncclFloat8e4m3", nccl::abi::typeOf(DType::float8e4m3));
GRADLINK_IS("ncclFloat8e5m2", nccl::abi::typeOf(DType::float8e5m2));
GRADLINK_IS("ncclSum", nccl::abi::opOf(ReduceOp::sum, 2));
GRADLINK_IS("ncclProd", nccl::abi::opOf(ReduceOp::prod, 2));
GRADLINK_IS("ncclMax", nccl::abi::opOf(ReduceOp::max, 2));
GRADLINK_IS("ncclMin", nccl::abi::opOf(ReduceOp::min, 2));
GRADLINK_IS("ncclAvg", nccl::abi::opOf(ReduceOp::avg, 2));

GRADLINK_AT(ncclConfig_t, size, Config, size);
GRADLINK_AT(ncclConfig_t, magic, Config, magic);
GRADLINK_AT(ncclConfig_t, version, Config, version);
GRADLINK_AT(ncclConfig_t, blocking, Config, blocking);
GRADLINK_AT(ncclConfig_t, cgaClusterSize, Config, cgaClusterSize);
GRADLINK_AT(ncclConfig_t, minCTAs, Config, minCtas);
GRADLINK_AT(ncclConfig_t, maxCTAs, Config, maxCtas);
GRADLINK_AT(ncclConfig_t, netName, Config, netName);
GRADLINK_AT(ncclConfig_t, splitShare, Config, splitShare);
GRADLINK_AT(ncclConfig_t, trafficClass, Config, trafficClass);
GRADLINK_AT(ncclConfig_t, commName, Config, commName);
GRADLINK_AT(ncclConfig_t, collnetEnable, Config, collnetEnable);
GRADLINK_AT(ncclConfig_t, CTAPolicy, Config, ctaPolicy);
GRADLINK_AT(ncclConfig_t, shrinkShare, Config, shrinkShare);
GRADLINK_AT(ncclConfig_t, nvlsCTAs, Config, nvlsCtas);
GRADLINK_AT(ncclConfig_t, nChannelsPerNetPeer, Config, channelsPerNetPeer);
GRADLINK_AT(ncclConfig_t, nvlinkCentricSched, Config, nvlinkCentricSched);
GRADLINK_AT(ncclConfig_t, graphUsageMode, Config, graphUsageMode);
GRADLINK_AT(ncclConfig_t, numRmaCtx, Config, numRmaCtx);
GRADLINK_AT(ncclConfig_t, maxP2pPeers, Config, maxP2pPeers);
GRADLINK_AT(ncclConfig_t, graphStreamOrdering, Config, graphStreamOrdering);
GRADLINK_IS("sizeof(ncclSimInfo_t)", sizeof(Simulation));
GRADLINK_AT(ncclSimInfo_t, magic, Simulation, magic);
GRADLINK_AT(ncclSimInfo_t, version, Simulation, version);
GRADLINK_AT(ncclSimInfo_t, estimatedTime, Simulation, estimatedTime);

#ifdef GRADLINK_NCCL_HEADERS
#define GRADLINK_SAME(symbol, member, arguments) \
  GRADLINK_SAME_AS(kNcclFunctions, #symbol, &::symbol)
GRADLINK_NCCL_REQUIRED(GRADLINK_SAME)
// Older headers lack some of these.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
GRADLINK_NCCL_OPTIONAL(GRADLINK_SAME)
#endif
#undef GRADLINK_SAME
GRADLINK_IS("sizeof(ncclUniqueId)", sizeof(ncclUniqueId));
GRADLINK_IS("ncclBfloat16", ncclBfloat16);
GRADLINK_IS("ncclAvg", ncclAvg);
GRADLINK_AT(ncclConfig_t, splitShare, ncclConfig_t, splitShare);
#endif

TEST(NcclAbi, IsThatOfTheHeaders) { SUCCEED() << "compared at compile time"; }

}  // namespace
}  // namespace gradlink::test
