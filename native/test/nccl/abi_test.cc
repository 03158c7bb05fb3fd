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

#define GRADLINK_SAME(symbol, member, arguments)                                                  \
  static_assert(                                                                                  \
      Signature<decltype(nccl::Library::member)>::text() == signatureOf(kNcclFunctions, #symbol), \
      "the prototype of " #symbol);
GRADLINK_NCCL_REQUIRED(GRADLINK_SAME)
GRADLINK_NCCL_OPTIONAL(GRADLINK_SAME)
#undef GRADLINK_SAME

constexpr bool isNumber(std::string_view name, long long ours) {
  return numberOf(kNcclNumbers, name) == ours;
}

static_assert(isNumber("ncclSuccess", nccl::abi::kSuccess));
static_assert(isNumber("ncclUnhandledCudaError", nccl::abi::kUnhandledCudaError));
static_assert(isNumber("ncclSystemError", nccl::abi::kSystemError));
static_assert(isNumber("ncclInternalError", nccl::abi::kInternalError));
static_assert(isNumber("ncclInvalidArgument", nccl::abi::kInvalidArgument));
static_assert(isNumber("ncclInvalidUsage", nccl::abi::kInvalidUsage));
static_assert(isNumber("ncclRemoteError", nccl::abi::kRemoteError));
static_assert(isNumber("ncclInProgress", nccl::abi::kInProgress));
static_assert(isNumber("ncclTimeout", nccl::abi::kTimeout));
static_assert(isNumber("sizeof(ncclUniqueId)", sizeof(nccl::abi::UniqueId)));
static_assert(isNumber("NCCL_CONFIG_UNDEF_INT", nccl::abi::kUndefined));
static_assert(isNumber("NCCL_API_MAGIC", nccl::abi::kConfigMagic));
static_assert(isNumber("NCCL_WIN_COLL_SYMMETRIC", nccl::abi::kWindowSymmetric));
static_assert(isNumber("ncclScalarHostImmediate", nccl::abi::kHostScalar));

static_assert(isNumber("ncclInt8", nccl::abi::typeOf(DType::int8)));
static_assert(isNumber("ncclUint8", nccl::abi::typeOf(DType::uint8)));
static_assert(isNumber("ncclInt32", nccl::abi::typeOf(DType::int32)));
static_assert(isNumber("ncclUint32", nccl::abi::typeOf(DType::uint32)));
static_assert(isNumber("ncclInt64", nccl::abi::typeOf(DType::int64)));
static_assert(isNumber("ncclUint64", nccl::abi::typeOf(DType::uint64)));
static_assert(isNumber("ncclFloat16", nccl::abi::typeOf(DType::float16)));
static_assert(isNumber("ncclBfloat16", nccl::abi::typeOf(DType::bfloat16)));
static_assert(isNumber("ncclFloat32", nccl::abi::typeOf(DType::float32)));
static_assert(isNumber("ncclFloat64", nccl::abi::typeOf(DType::float64)));
static_assert(isNumber("ncclFloat8e4m3", nccl::abi::typeOf(DType::float8e4m3)));
static_assert(isNumber("ncclFloat8e5m2", nccl::abi::typeOf(DType::float8e5m2)));
static_assert(isNumber("ncclSum", nccl::abi::opOf(ReduceOp::sum, 2)));
static_assert(isNumber("ncclProd", nccl::abi::opOf(ReduceOp::prod, 2)));
static_assert(isNumber("ncclMax", nccl::abi::opOf(ReduceOp::max, 2)));
static_assert(isNumber("ncclMin", nccl::abi::opOf(ReduceOp::min, 2)));
static_assert(isNumber("ncclAvg", nccl::abi::opOf(ReduceOp::avg, 2)));

static_assert(isNumber("offsetof(ncclConfig_t, size)", offsetof(Config, size)));
static_assert(isNumber("offsetof(ncclConfig_t, magic)", offsetof(Config, magic)));
static_assert(isNumber("offsetof(ncclConfig_t, version)", offsetof(Config, version)));
static_assert(isNumber("offsetof(ncclConfig_t, blocking)", offsetof(Config, blocking)));
static_assert(isNumber("offsetof(ncclConfig_t, cgaClusterSize)", offsetof(Config, cgaClusterSize)));
static_assert(isNumber("offsetof(ncclConfig_t, minCTAs)", offsetof(Config, minCtas)));
static_assert(isNumber("offsetof(ncclConfig_t, maxCTAs)", offsetof(Config, maxCtas)));
static_assert(isNumber("offsetof(ncclConfig_t, netName)", offsetof(Config, netName)));
static_assert(isNumber("offsetof(ncclConfig_t, splitShare)", offsetof(Config, splitShare)));
static_assert(isNumber("offsetof(ncclConfig_t, trafficClass)", offsetof(Config, trafficClass)));
static_assert(isNumber("offsetof(ncclConfig_t, commName)", offsetof(Config, commName)));
static_assert(isNumber("offsetof(ncclConfig_t, collnetEnable)", offsetof(Config, collnetEnable)));
static_assert(isNumber("offsetof(ncclConfig_t, CTAPolicy)", offsetof(Config, ctaPolicy)));
static_assert(isNumber("offsetof(ncclConfig_t, shrinkShare)", offsetof(Config, shrinkShare)));
static_assert(isNumber("offsetof(ncclConfig_t, nvlsCTAs)", offsetof(Config, nvlsCtas)));
static_assert(isNumber("offsetof(ncclConfig_t, nChannelsPerNetPeer)",
                       offsetof(Config, channelsPerNetPeer)));
static_assert(isNumber("offsetof(ncclConfig_t, nvlinkCentricSched)",
                       offsetof(Config, nvlinkCentricSched)));
static_assert(isNumber("offsetof(ncclConfig_t, graphUsageMode)", offsetof(Config, graphUsageMode)));
static_assert(isNumber("offsetof(ncclConfig_t, numRmaCtx)", offsetof(Config, numRmaCtx)));
static_assert(isNumber("offsetof(ncclConfig_t, maxP2pPeers)", offsetof(Config, maxP2pPeers)));
static_assert(isNumber("offsetof(ncclConfig_t, graphStreamOrdering)",
                       offsetof(Config, graphStreamOrdering)));
static_assert(isNumber("sizeof(ncclSimInfo_t)", sizeof(Simulation)));
static_assert(isNumber("offsetof(ncclSimInfo_t, magic)", offsetof(Simulation, magic)));
static_assert(isNumber("offsetof(ncclSimInfo_t, version)", offsetof(Simulation, version)));
static_assert(isNumber("offsetof(ncclSimInfo_t, estimatedTime)",
                       offsetof(Simulation, estimatedTime)));

#ifdef GRADLINK_NCCL_HEADERS
#define GRADLINK_SAME(symbol, member, arguments)                                                \
  static_assert(Signature<decltype(&::symbol)>::text() == signatureOf(kNcclFunctions, #symbol), \
                "the prototype of " #symbol);
GRADLINK_NCCL_REQUIRED(GRADLINK_SAME)
// Older headers lack some of these.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
GRADLINK_NCCL_OPTIONAL(GRADLINK_SAME)
#endif
#undef GRADLINK_SAME
static_assert(isNumber("sizeof(ncclUniqueId)", sizeof(ncclUniqueId)));
static_assert(isNumber("ncclBfloat16", ncclBfloat16));
static_assert(isNumber("ncclAvg", ncclAvg));
static_assert(isNumber("offsetof(ncclConfig_t, splitShare)", offsetof(ncclConfig_t, splitShare)));
#endif

TEST(NcclAbi, IsThatOfTheHeaders) { SUCCEED() << "compared at compile time"; }

}  // namespace
}  // namespace gradlink::test
