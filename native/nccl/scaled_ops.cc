#include "nccl/scaled_ops.h"

#include <cstring>

#include "core/kernels/reduce_kernels.h"

namespace gradlink::nccl {
namespace {

/// A number in an element type, rounded as sums are.
struct Scalar {
  alignas(8) unsigned char bytes[8] = {};

  Scalar(double value, DType dtype) {
    unsigned char one[8] = {};
    const auto put = [&one](auto bits) { std::memcpy(one, &bits, sizeof(bits)); };
    if (dtype == DType::float16) put(std::uint16_t{0x3c00});
    if (dtype == DType::bfloat16) put(std::uint16_t{0x3f80});
    if (dtype == DType::float32) put(1.0F);
    if (dtype == DType::float64) put(1.0);
    const void* const sources[] = {one};
    weightedSum(bytes, sources, {&value, 1}, 1, dtype);
  }
};

}  // namespace

ScaledOps::ScaledOps(const Library& library, const Comms& comms, std::span<const Launch> launches)
    : library_(library), comms_(comms) {
  rows_.reserve(launches.size());
  for (const Launch& launch : launches) {
    Row& row = rows_.emplace_back(Row{abi::opOf(launch.shape.op, comms.size()), {}});
    for (std::size_t i = 0; i < launch.scales.size(); ++i) {
      Scalar scalar(launch.scales[i], launch.shape.dtype);
      int op = 0;
      const abi::Result result =
          library.redOpCreatePreMulSum(&op, scalar.bytes, abi::typeOf(launch.shape.dtype),
                                       abi::kHostScalar, comms.members()[i]->handle);
      if (isFailure(result)) {
        destroy();
        throw library.failure(result, nameOf(launch.shape.kind));
      }
      row.made.push_back(op);
    }
  }
}

ScaledOps::~ScaledOps() { destroy(); }

void ScaledOps::destroy() {
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.made.size(); ++i) {
      abi::CommHandle comm = comms_.members()[i]->handle;
      if (comm != nullptr) library_.redOpDestroy(row.made[i], comm);
    }
  }
}

}  // namespace gradlink::nccl
