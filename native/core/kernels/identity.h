// The identity of a reduction: the value that changes no other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// The bits of 0 for sum and avg, of 1 for prod, of the greatest value for min and the least for
/// max (infinities for floats). For float8 the greatest finite numbers: e4m3 has no infinities, and
/// NCCL makes e5m2's finite.
constexpr std::uint64_t identityBits(DType dtype, ReduceOp op) {
  // One, the greatest and the least value of each type, in the order of DType.
  constexpr std::uint64_t kOne[kDTypeCount] = {
      1, 1, 1, 1, 1, 1, 0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000, 0x38, 0x3c, 1};
  constexpr std::uint64_t kGreatest[kDTypeCount] = {
      0x7f,       0xff,   0x7fffffff, 0xffffffff, 0x7fffffffffffffff,
      UINT64_MAX, 0x7c00, 0x7f80,     0x7f800000, 0x7ff0000000000000,
      0x7e,       0x7b,   0x7fff};
  constexpr std::uint64_t kLeast[kDTypeCount] = {
      0x80, 0,      0x80000000, 0,          0x8000000000000000,
      0,    0xfc00, 0xff80,     0xff800000, 0xfff0000000000000,
      0xfe, 0xfb,   0x8000};
  const auto type = static_cast<std::size_t>(dtype);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return 0;
    case ReduceOp::prod:
      return kOne[type];
    case ReduceOp::min:
      return kGreatest[type];
    case ReduceOp::max:
      return kLeast[type];
  }
  return 0;
}

inline void fillIdentity(void* to, std::size_t count, DType dtype, ReduceOp op) {
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t bits = identityBits(dtype, op);
  const std::size_t width = sizeOf(dtype);
  if (bits == 0) {
    if (count > 0) std::memset(to, 0, count * width);
    return;
  }
  auto* bytes = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes + i * width, &bits, width);
}

}  // namespace gradlink
