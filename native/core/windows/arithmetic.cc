#include "core/windows/arithmetic.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/kernels/copy_bytes.h"
#include "core/kernels/reduce_kernels.h"

namespace gradlink {

void checkWindowWeight(DType dtype, double weight) {
  if (weight == 1 || isFloat(dtype)) return;
  throw misuse("window",
               std::string("weights other than 1 need a float type, not ") + nameOf(dtype));
}

void scaledCopy(void* to, const void* from, double weight, std::size_t count, DType dtype) {
  if (weight == 1) {
    if (to != from) copyBytes(to, from, count * sizeOf(dtype));
    return;
  }
  const void* const src[] = {from};
  weightedSum(to, src, {&weight, 1}, count, dtype);
}

void addScaled(void* to, const void* values, double weight, std::size_t count, DType dtype) {
  const void* const src[] = {to, values};
  const double weights[] = {1, weight};
  combine(to, src, weights, 1, count, dtype);
}

void combine(void* to, std::span<const void* const> arrays, std::span<const double> weights,
             std::size_t divisor, std::size_t count, DType dtype) {
  // Integers have no weights; for floats the plain sum is the same and faster.
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 1; })) {
    void* const dst[] = {to};
    if (divisor == 1) return reduceMany(dst, arrays, count, dtype, ReduceOp::sum);
    return averageMany(dst, arrays, count, dtype, divisor);
  }
  weightedSum(to, arrays, weights, count, dtype, divisor);
}

}  // namespace gradlink
