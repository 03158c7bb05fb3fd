#include "core/kernels/partial.h"
#include "core/kernels/copy_bytes.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gradlink {
namespace {

// Elements widened at a time: they fit in the first-level cache for a few arrays.
constexpr std::size_t kWidened = 1024;
constexpr float kSmaller = 0x1p-16F;

}  // namespace

void Partial::take(const void* from, std::byte* to, std::size_t count) const {
  if (count == 0) return;
  if (!isWider()) {
    copyBytes(to, from, count * sizeOf(dtype));
    return;
  }
  auto* const wide = reinterpret_cast<float*>(to);
  widen(from, wide, count, result);
  if (!isScaled()) return;
  for (std::size_t i = 0; i < count; ++i) wide[i] *= kSmaller;
}

void Partial::finish(std::byte* sums, std::byte* to, std::size_t count, std::size_t arrays) const {
  const std::size_t divisor = op == ReduceOp::avg ? arrays : 1;
  if (!isWider()) return divideBy(sums, count, dtype, divisor);
  auto* const wide = reinterpret_cast<float*>(sums);
  if (!isScaled()) return narrow(wide, to, count, result, divisor);
  const auto parts = static_cast<float>(divisor);
  for (std::size_t i = 0; i < count; ++i) {
    // Either step alone is exact if it comes first.
    const bool large = std::abs(wide[i]) >= 1;
    wide[i] = large ? wide[i] / parts / kSmaller : wide[i] / kSmaller / parts;
  }
  narrow(wide, to, count, result);
}

void Partial::sum(std::span<const void* const> arrays, std::size_t first, std::byte* to,
                  std::size_t count) const {
  std::vector<const void*> sources(arrays.size());
  const auto at = [&](std::size_t array, std::size_t element) {
    return static_cast<const std::byte*>(arrays[array]) + element * sizeOf(result);
  };
  if (!isWider()) {
    for (std::size_t i = 0; i < arrays.size(); ++i) sources[i] = at(i, first);
    void* const target[] = {to};
    return reduceMany(target, sources, count, dtype, ReduceOp::sum);
  }
  std::vector<float> wide(arrays.size() * std::min(kWidened, count));
  for (std::size_t done = 0; done < count; done += kWidened) {
    const std::size_t part = std::min(kWidened, count - done);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      float* const block = wide.data() + i * part;
      take(at(i, first + done), reinterpret_cast<std::byte*>(block), part);
      sources[i] = block;
    }
    void* const target[] = {reinterpret_cast<float*>(to) + done};
    reduceMany(target, sources, part, dtype, ReduceOp::sum);
  }
}

}  // namespace gradlink
