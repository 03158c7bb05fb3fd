// A reduction in several steps: what its partial results are kept in, and the ways into that and
// out of it.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels/reduce_kernels.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

struct Partial {
  Partial(DType dtype, ReduceOp op) : result(dtype), dtype(partialOf(dtype, op)), op(op) {}

  /// A sum in one step, which needs no wider type.
  static Partial none(DType dtype) {
    Partial same(dtype, ReduceOp::sum);
    same.dtype = dtype;
    return same;
  }

  bool isWider() const { return dtype != result; }

  void take(const void* from, std::byte* to, std::size_t count) const;
  /// Elements [first, first + count) of arrays of the result's type, summed from the left.
  void sum(std::span<const void* const> arrays, std::size_t first, std::byte* to,
           std::size_t count) const;
  /// What `arrays` arrays add up to becomes the result: divided where that is an average, rounded
  /// once. `to` is `sums`, or where they are wider another place.
  void finish(std::byte* sums, std::byte* to, std::size_t count, std::size_t arrays) const;

  DType result;
  DType dtype;
  ReduceOp op;

 private:
  /// bfloat16 has float32's range, so that a sum could leave it where the result does not. Its sums
  /// are kept 2^16 times smaller: all are multiples of 2^-133, and of float32's least 2^-149 then,
  /// so that nothing else changes.
  bool isScaled() const { return isWider() && result == DType::bfloat16 && op != ReduceOp::prod; }
};

}  // namespace gradlink
