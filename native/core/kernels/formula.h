// Macros for formulas that the host's loops and GPU kernels share.
#pragma once

#include <cstdint>

// Always inlined: an out-of-line copy could end up in a file compiled for a wider SIMD level.
#if defined(__CUDACC__)
#define GRADLINK_FORMULA __device__ __forceinline__
#define GRADLINK_KEEP_ROLLED _Pragma("unroll 1")
#else
#include <bit>
#define GRADLINK_FORMULA __attribute__((always_inline)) inline
#define GRADLINK_KEEP_ROLLED
#endif

namespace gradlink::kernels {

#if defined(__CUDACC__)
GRADLINK_FORMULA std::uint32_t bitsOf(float x) { return __float_as_uint(x); }
GRADLINK_FORMULA std::uint64_t bitsOf(double x) {
  return static_cast<std::uint64_t>(__double_as_longlong(x));
}
GRADLINK_FORMULA std::uint64_t multiplyHigh(std::uint64_t a, std::uint64_t b) {
  return __umul64hi(a, b);
}
#else
GRADLINK_FORMULA std::uint32_t bitsOf(float x) { return std::bit_cast<std::uint32_t>(x); }
GRADLINK_FORMULA std::uint64_t bitsOf(double x) { return std::bit_cast<std::uint64_t>(x); }
GRADLINK_FORMULA std::uint64_t multiplyHigh(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}
#endif

}  // namespace gradlink::kernels
