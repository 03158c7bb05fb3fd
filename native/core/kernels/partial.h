// Reductions in several steps: the type of partial results and the conversions to and from it.
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
  /// Sums elements [first, first + count) of arrays of the result's type, from the left.
  void sum(std::span<const void* const> arrays, std::size_t first, std::byte* to,
           std::size_t count) const;
  /// Finishes a sum of `arrays` arrays: divides an average, rounds once. `to` may be `sums` unless
  /// wider.
  void finish(std::byte* sums, std::byte* to, std::size_t count, std::size_t arrays) const;

  DType result;
  DType dtype;
  ReduceOp op;

 private:
  /// bfloat16 has float32's range, so a sum could overflow where the result does not. Sums are
  /// scaled by 2^-16: all are multiples of 2^-133, then of float32's least 2^-149. Nothing else
  /// changes.
  bool isScaled() const { return isWider() && result == DType::bfloat16 && op != ReduceOp::prod; }
};

}  // namespace gradlink
