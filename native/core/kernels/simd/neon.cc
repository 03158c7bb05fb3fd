// 64-bit ARM, where NEON and its float16 conversions are part of the baseline.
#include "core/kernels/simd/kernel_table.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace gradlink::simd {
namespace {

constexpr int kVectorBytes = 16;

// GCC does not emit ARM's non-temporal hint; the cores recognize long streams of full lines.
template <class V>
inline __attribute__((always_inline)) void streamStore(void* to, V value) {
  std::memcpy(to, &value, sizeof(V));
}
inline __attribute__((always_inline)) void streamFence() {}

#define GRADLINK_NATIVE_HALF
template <class Halves>
inline __attribute__((always_inline)) auto nativeWidenHalf(Halves halves) {
  return vcvt_f32_f16(__builtin_bit_cast(float16x4_t, halves));
}
inline __attribute__((always_inline)) auto nativeNarrowHalf(float32x4_t floats) {
  using Halves [[gnu::vector_size(8)]] = std::uint16_t;
  return __builtin_bit_cast(Halves, vcvt_f16_f32(floats));
}

}  // namespace
}  // namespace gradlink::simd

// clang-format off
#include "core/kernels/simd/vectors.inc"
#include "core/kernels/simd/kernels.inc"
// clang-format on

namespace gradlink::simd {
namespace {
constexpr KernelTable kTable = makeTable("neon");
}
const KernelTable* neonKernels() { return &kTable; }
}  // namespace gradlink::simd

#else

namespace gradlink::simd {
const KernelTable* neonKernels() { return nullptr; }
}  // namespace gradlink::simd

#endif
