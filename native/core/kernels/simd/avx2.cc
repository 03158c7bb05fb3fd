// Compiled with AVX2 and F16C. Nothing here may run before level.cc has asked the machine.
#include "core/kernels/simd/kernel_table.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace gradlink::simd {
namespace {

constexpr int kVectorBytes = 32;

template <class V>
inline __attribute__((always_inline)) void streamStore(void* to, V value) {
  if constexpr (sizeof(V) == 32) {
    _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)value);
  } else {
    _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)value);
  }
}
inline __attribute__((always_inline)) void streamFence() { _mm_sfence(); }

#define GRADLINK_NATIVE_HALF
template <class Halves>
inline __attribute__((always_inline)) auto nativeWidenHalf(Halves halves) {
  return _mm256_cvtph_ps((__m128i)halves);
}
inline __attribute__((always_inline)) auto nativeNarrowHalf(__m256 floats) {
  using Halves [[gnu::vector_size(16)]] = std::uint16_t;
  return (Halves)_mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

}  // namespace
}  // namespace gradlink::simd

// clang-format off
#include "core/kernels/simd/vectors.inc"
#include "core/kernels/simd/kernels.inc"
// clang-format on

namespace gradlink::simd {
namespace {
constexpr KernelTable kTable = makeTable("avx2");
}
const KernelTable* avx2Kernels() { return &kTable; }
}  // namespace gradlink::simd

#else

namespace gradlink::simd {
const KernelTable* avx2Kernels() { return nullptr; }
}  // namespace gradlink::simd

#endif
