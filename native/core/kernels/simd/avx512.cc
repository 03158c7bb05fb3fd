// Compiled with AVX-512 F, BW, DQ, VL. Nothing here may run before level.cc has asked the machine.
#include "core/kernels/simd/kernel_table.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace gradlink::simd {
namespace {

constexpr int kVectorBytes = 64;

template <class V>
inline __attribute__((always_inline)) void streamStore(void* to, V value) {
  if constexpr (sizeof(V) == 64) {
    _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)value);
  } else {
    _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)value);
  }
}
inline __attribute__((always_inline)) void streamFence() { _mm_sfence(); }

#define GRADLINK_NATIVE_HALF
template <class Halves>
inline __attribute__((always_inline)) auto nativeWidenHalf(Halves halves) {
  // Not _mm512_cvtph_ps: GCC 12 warns about its own header's undefined value there.
  return _mm512_maskz_cvtph_ps(static_cast<__mmask16>(-1), (__m256i)halves);
}
inline __attribute__((always_inline)) auto nativeNarrowHalf(__m512 floats) {
  using Halves [[gnu::vector_size(32)]] = std::uint16_t;
  return (Halves)_mm512_maskz_cvtps_ph(static_cast<__mmask16>(-1), floats,
                                       _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

}  // namespace
}  // namespace gradlink::simd

// clang-format off
#include "core/kernels/simd/vectors.inc"
#include "core/kernels/simd/kernels.inc"
// clang-format on

namespace gradlink::simd {
namespace {
constexpr KernelTable kTable = makeTable("avx512");
}
const KernelTable* avx512Kernels() { return &kTable; }
}  // namespace gradlink::simd

#else

namespace gradlink::simd {
const KernelTable* avx512Kernels() { return nullptr; }
}  // namespace gradlink::simd

#endif
