// The library's functions that move data.
#include <cmath>
#include <cstring>

#include "nccl/driver_link.h"
#include "nccl/export.h"
#include "nccl/group.h"

namespace gradlink::fake {
namespace {

using abi::CommHandle;
using cuda::StreamHandle;

/// float16 (5) and bfloat16 (8 bits of exponent).
double widen(std::uint16_t bits, int exponentBits) {
  const int mantissaBits = 15 - exponentBits;
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const int mantissa = bits & ((1 << mantissaBits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissaBits);
  return sign * std::ldexp((1 << mantissaBits) + mantissa, exponent - bias - mantissaBits);
}

template <class T>
T read(const void* scalar) {
  T value;
  std::memcpy(&value, scalar, sizeof(value));
  return value;
}

abi::Result message(void* data, std::size_t count, int type, int peer, CommHandle comm,
                    StreamHandle stream, bool isSend) {
  const std::size_t bytes = isType(type) ? count * bytesOf(type) : 0;
  return addMessage(comm, stream, type, {peer, isSend ? 1 : 0, bytes, data});
}

FAKE_NCCL(20300, ncclAllReduce,
          (const void* in, void* out, std::size_t count, int type, int op, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::allReduce, type, op, 0, count}, in, out);
}
FAKE_NCCL(20300, ncclReduce,
          (const void* in, void* out, std::size_t count, int type, int op, int root,
           CommHandle comm, StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::reduce, type, op, root, count}, in, out);
}
FAKE_NCCL(20300, ncclBroadcast,
          (const void* in, void* out, std::size_t count, int type, int root, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::broadcast, type, 0, root, count}, in, out);
}
FAKE_NCCL(20300, ncclAllGather,
          (const void* in, void* out, std::size_t count, int type, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::allGather, type, 0, 0, count}, in, out);
}
FAKE_NCCL(20300, ncclReduceScatter,
          (const void* in, void* out, std::size_t count, int type, int op, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::reduceScatter, type, op, 0, count}, in, out);
}
FAKE_NCCL(22803, ncclAlltoAll,
          (const void* in, void* out, std::size_t count, int type, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::allToAll, type, 0, 0, count}, in, out);
}
FAKE_NCCL(22803, ncclGather,
          (const void* in, void* out, std::size_t count, int type, int root, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::gather, type, 0, root, count}, in, out);
}
FAKE_NCCL(22803, ncclScatter,
          (const void* in, void* out, std::size_t count, int type, int root, CommHandle comm,
           StreamHandle stream)) {
  return addCollective(comm, stream, {Collective::scatter, type, 0, root, count}, in, out);
}
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
  double scale = 0;
  if (type == abi::typeOf(DType::float16)) {
    scale = widen(read<std::uint16_t>(scalar), 5);
  } else if (type == abi::typeOf(DType::bfloat16)) {
    scale = widen(read<std::uint16_t>(scalar), 8);
  } else if (type == abi::typeOf(DType::float32)) {
    scale = read<float>(scalar);
  } else if (type == abi::typeOf(DType::float64)) {
    scale = read<double>(scalar);
  } else {
    return abi::kInvalidArgument;
  }
  *op = comm->addOp(type, scale);
  return abi::kSuccess;
}
FAKE_NCCL(21104, ncclRedOpDestroy, (int op, CommHandle handle)) {
  const std::shared_ptr<Comm> comm = Comm::of(handle);
  return comm && comm->removeOp(op) ? abi::kSuccess : abi::kInvalidArgument;
}

}  // namespace
}  // namespace gradlink::fake
