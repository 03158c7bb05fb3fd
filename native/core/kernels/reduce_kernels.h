// The arithmetic of the package: one pass over memory that reads k arrays and writes m. Uses the
// widest SIMD level of the machine (GRADLINK_SIMD names a lower one); all give the same bits.
// Single-threaded: callers split the range among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

/// Which destinations of a call may bypass the caches.
struct Streaming {
  // NOLINTNEXTLINE(google-explicit-constructor): all or none is what most callers mean.
  constexpr Streaming(bool all = false) : first(all ? SIZE_MAX : 0) {}
  static constexpr Streaming leading(std::size_t destinations) {
    Streaming some;
    some.first = destinations;
    return some;
  }
  explicit operator bool() const { return first != 0; }

  std::size_t first;
};

/// dst[j][i] = src[0][i] op src[1][i] op ..., folded from the left, so the result depends on the
/// order of `src` alone. avg divides by src.size(). A dst may be exactly one of the srcs but may
/// not overlap one otherwise. Streaming: for results larger than the caches or read by another core
/// (store_style.h), in dsts that are not srcs.
void reduceMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                DType, ReduceOp, Streaming = {});

/// (src[0][i] + src[1][i] + ...) / divisor, as avg of `divisor` arrays would be.
void averageMany(std::span<void* const> dst, std::span<const void* const> src, std::size_t count,
                 DType, std::size_t divisor);

/// data[i] /= divisor, as avg divides: the last step of an average.
void divideBy(void* data, std::size_t count, DType, std::size_t divisor);

void widen(const void* halves, float* to, std::size_t count, DType halfType);
/// from[i] / divisor, rounded once, ties to even; NaN stays NaN. `halves` may begin where `from`
/// does.
void narrow(const float* from, void* halves, std::size_t count, DType halfType,
            std::size_t divisor = 1);

/// dst[i] = (sum over s of weights[s] * src[s][i], from the left) / divisor. float16 and bfloat16
/// are summed in float32, integers as integer_weights.h says. A quotient that fits is right even if
/// the sum overflows. dst may be exactly one of the srcs.
void weightedSum(void* dst, std::span<const void* const> src, std::span<const double> weights,
                 std::size_t count, DType, std::size_t divisor = 1);

struct WeightedTerm {
  const void* src;
  double weight;
};
/// A result: the sum of the next `terms` terms, at least one, divided.
struct WeightedOutput {
  void* dst;
  std::size_t terms;
  std::size_t divisor = 1;
};

/// Several weightedSum() at once, with the same bits. All sources count as they were before the
/// call, so any dst may be exactly any src; dsts are distinct. Streaming: only if no dst is a src.
void weightedSums(std::span<const WeightedOutput> outputs, std::span<const WeightedTerm> terms,
                  std::size_t count, DType, bool streaming = false);

/// Copies src to every dst; a dst equal to src is skipped.
void copyMany(std::span<void* const> dst, const void* src, std::size_t bytes, Streaming = {});

const char* simdLevel();
/// Whether this machine has a level, "avx512" for example. Files of a level are compiled for no
/// more than this checks.
bool hasSimdLevel(std::string_view name);

}  // namespace gradlink
