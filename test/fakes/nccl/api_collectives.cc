// The library's functions that move data.
#include <cstring>

#include "core/kernels/reduce_kernels.h"
#include "nccl/driver_link.h"
#include "nccl/export.h"
#include "nccl/group.h"

namespace gradlink::fake {
namespace {

using abi::CommHandle;
using cuda::StreamHandle;

abi::Result message(void* data, std::size_t count, int type, int peer, CommHandle comm,
                    StreamHandle stream, bool isSend) {
  const std::size_t bytes = isType(type) ? count * bytesOf(type) : 0;
  return addMessage(comm, stream, type, {peer, isSend ? 1 : 0, bytes, data});
}

/// With the parameters that only some have.
#define FAKE_COLLECTIVE(since, name, kind, op, root, ...)                                       \
  FAKE_NCCL(since, name,                                                                        \
            (const void* in, void* out, std::size_t count, int type __VA_OPT__(, ) __VA_ARGS__, \
             CommHandle comm, StreamHandle stream)) {                                           \
    return addCollective(comm, stream, {Collective::kind, type, op, root, count}, in, out);     \
  }
FAKE_COLLECTIVE(20300, ncclAllReduce, allReduce, op, 0, int op)
FAKE_COLLECTIVE(20300, ncclReduce, reduce, op, root, int op, int root)
FAKE_COLLECTIVE(20300, ncclBroadcast, broadcast, 0, root, int root)
FAKE_COLLECTIVE(20300, ncclAllGather, allGather, 0, 0)
FAKE_COLLECTIVE(20300, ncclReduceScatter, reduceScatter, op, 0, int op)
FAKE_COLLECTIVE(22803, ncclAlltoAll, allToAll, 0, 0)
FAKE_COLLECTIVE(22803, ncclGather, gather, 0, root, int root)
FAKE_COLLECTIVE(22803, ncclScatter, scatter, 0, root, int root)

FAKE_NCCL(20703, ncclSend,
          (const void* data, std::size_t count, int type, int peer, CommHandle comm,
           StreamHandle stream)) {
  return message(const_cast<void*>(data), count, type, peer, comm, stream, true);
}
FAKE_NCCL(20703, ncclRecv,
          (void* data, std::size_t count, int type, int peer, CommHandle comm,
           StreamHandle stream)) {
  return message(data, count, type, peer, comm, stream, false);
}

FAKE_NCCL(20300, ncclGroupStart, ()) {
  beginGroup();
  return abi::kSuccess;
}
FAKE_NCCL(20300, ncclGroupEnd, ()) { return endGroup(); }
FAKE_NCCL(22203, ncclGroupSimulateEnd, (abi::Simulation * simulation)) {
  return simulation != nullptr ? simulateGroup(*simulation) : endGroup();
}

FAKE_NCCL(21104, ncclRedOpCreatePreMulSum,
          (int* op, void* scalar, int type, int residence, CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  // Factors in device memory, integer types and float8 are nothing that the tests' subject uses.
  if (!comm || residence != abi::kHostScalar) return abi::kInvalidArgument;
  const auto is = [type](DType dtype) { return type == abi::typeOf(dtype); };
  double scale = 0;
  float narrow = 0;
  if (is(DType::float64)) {
    std::memcpy(&scale, scalar, sizeof scale);
  } else if (is(DType::float32)) {
    std::memcpy(&narrow, scalar, sizeof narrow);
  } else if (is(DType::float16) || is(DType::bfloat16)) {
    widen(scalar, &narrow, 1, is(DType::float16) ? DType::float16 : DType::bfloat16);
  } else {
    return abi::kInvalidArgument;
  }
  if (!is(DType::float64)) scale = narrow;
  *op = comm->addOp(type, scale);
  return abi::kSuccess;
}
FAKE_NCCL(21104, ncclRedOpDestroy, (int op, CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  return comm && comm->removeOp(op) ? abi::kSuccess : abi::kInvalidArgument;
}

}  // namespace
}  // namespace gradlink::fake
