// The arithmetic of the package: one pass over memory that reads k arrays and writes m. Explicit
// SIMD, the widest level the machine has (AVX-512, AVX2, NEON, scalar; GRADLINK_SIMD names a lower
// one), all giving the same bits. Single-threaded: callers cut the range and hand the parts to
// threads.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"
#include "core/reduce_op.h"

namespace gradlink {

/// dst[j][i] = src[0][i] op src[1][i] op ... for every j and every i < count, folded from the left,
/// so that the result depends on the order of `src` alone. avg divides by src.size(). A dst may be
/// one of the srcs exactly (in place) but may not overlap one otherwise. `streaming`: bypass the
/// caches for dsts that are not also srcs; for results that nobody reads soon and that are larger
/// than the caches.
void reduceMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                DType, ReduceOp, bool streaming = false);

/// data[i] /= divisor, as avg divides: what is left of an average whose sum came about in steps.
void divideBy(void* data, std::size_t count, DType, std::size_t divisor);

/// dst[i] = sum over s of weights[s] * src[s][i], from the left; float types only, float16 and
/// bfloat16 in float32, float32 in float32, float64 in float64. dst may be one of the srcs exactly.
void weightedSum(void* dst, std::span<const void* const> src, std::span<const double> weights,
                 std::size_t count, DType);

/// Copies src to every dst (those equal to src are left alone).
void copyMany(std::span<void* const> dst, const void* src, std::size_t bytes,
              bool streaming = false);

/// "avx512", "avx2", "neon" or "scalar": what the calls above use.
const char* simdLevel();

}  // namespace gradlink
