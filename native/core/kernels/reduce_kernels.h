// The arithmetic of the package: one pass over memory that reads k arrays and writes m. Explicit
// SIMD, the widest level the machine has (AVX-512, AVX2, NEON, scalar; GRADLINK_SIMD names a lower
// one), all giving the same bits. Single-threaded: callers cut the range and hand the parts to
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// Which destinations of a call bypass the caches, where they can.
struct Streaming {
  // NOLINTNEXTLINE(google-explicit-constructor): all or none is what most callers mean.
  constexpr Streaming(bool all = false) : first(all ? SIZE_MAX : 0) {}
  static constexpr Streaming leading(std::size_t destinations) {
    Streaming some;
    some.first = destinations;
    return some;
  }
  explicit operator bool() const { return first != 0; }

  /// So many, counted from the first.
  std::size_t first;
};

/// dst[j][i] = src[0][i] op src[1][i] op ... for every j and every i < count, folded from the left,
/// so that the result depends on the order of `src` alone. avg divides by src.size(). A dst may be
/// one of the srcs exactly (in place) but may not overlap one otherwise. Streaming: bypass the
/// caches for dsts that are not also srcs; for results that are larger than the caches and that
/// nobody reads soon, or that another core reads (store_style.h).
void reduceMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                DType, ReduceOp, Streaming = {});

/// (src[0][i] + src[1][i] + ...) / divisor, as avg of so many arrays would be.
void averageMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                 DType, std::size_t divisor);

/// data[i] /= divisor, as avg divides: what is left of an average whose sum came about in steps.
void divideBy(void* data, std::size_t count, DType, std::size_t divisor);

/// Halves (float16, bfloat16) as float32, exactly.
void widen(const void* halves, float* to, std::size_t count, DType halfType);
/// from[i] / divisor, rounded to halves once: to nearest, ties to even; NaN stays NaN. `halves` may
/// begin where `from` does.
void narrow(const float* from, void* halves, std::size_t count, DType halfType,
            std::size_t divisor = 1);

/// dst[i] = (sum over s of weights[s] * src[s][i], from the left) / divisor; float16 and bfloat16
/// in float32, float32 in float32, float64 in float64, integers as integer_weights.h says. A
/// quotient that fits is right also where the sum overflows. dst may be one of the srcs exactly.
void weightedSum(void* dst, std::span<const void* const> src, std::span<const double> weights,
                 std::size_t count, DType, std::size_t divisor = 1);

struct WeightedTerm {
  const void* src;
  double weight;
};
/// A result: the sum of the next so many terms, at least one, divided.
struct WeightedOutput {
  void* dst;
  std::size_t terms;
  std::size_t divisor = 1;
};

/// Several weightedSum() at once, with the same bits. All of an element's sources count as they
/// were before the call, so that any dst may be any src exactly; dsts are all different. Streaming:
/// bypass the caches, where no dst is a src.
void weightedSums(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                  std::size_t count, DType, bool streaming = false);

/// Copies src to every dst (those equal to src are left alone).
void copyMany(std::span<void* const> dst, const void* src, std::size_t bytes, Streaming = {});

/// The same for results. `large`: nobody reads them before they have left the caches. They then
/// bypass these, a long one alone only where that has been faster of late: some machines copy as
/// fast without, others not.
void copyResults(std::span<void* const> dst, const void* src, std::size_t bytes, bool large);

/// "avx512", "avx2", "neon" or "scalar": what the calls above use.
const char* simdLevel();
/// Whether this machine has a level, "avx512" for example. Files of a level are compiled for no
/// more than this asks for.
bool hasSimdLevel(std::string_view name);

}  // namespace gradlink
