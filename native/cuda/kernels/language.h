// The dialect of the kernels: CUDA C++ for nvcc; C++ for a host compiler, where the caller sets the
// thread's indices and calls the function once for each thread.
//
// Kernels have no shared memory and no communication inside a block, so both give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/formula.h"

#if defined(__CUDACC__)

#define GRADLINK_DEVICE __device__ __forceinline__
/// A kernel, exported by name. At least three blocks a multiprocessor: at most 80 registers. By
/// default ptxas aims at more blocks than memory-bound kernels need, and spills registers.
#define GRADLINK_KERNEL extern "C" __global__ void __launch_bounds__(256, 3)
#define GRADLINK_UNROLL _Pragma("unroll")
#define GRADLINK_UNROLL_BY_16 _Pragma("unroll 16")

#else

#include <atomic>
#include <chrono>
#include <thread>

#define GRADLINK_DEVICE inline
#define GRADLINK_KERNEL inline void
#define GRADLINK_UNROLL
#define GRADLINK_UNROLL_BY_16

#endif

#if defined(__CUDACC__)
// Of libdevice, which nvcc links. With inline assembly instead, nvcc no longer sees that all
// pointers are global, and emits generic loads and stores.
extern "C" __device__ float __nv_half2float(unsigned short);
extern "C" __device__ unsigned short __nv_float2half_rn(float);
#endif

namespace gradlink::kernels {

#if defined(__CUDACC__)

using Vector = uint4;

/// In one access: nvcc splits a Vector and does not always merge it again.
GRADLINK_DEVICE void storeVector(Vector* to, Vector v) {
  const std::uint64_t low = v.x | static_cast<std::uint64_t>(v.y) << 32;
  const std::uint64_t high = v.z | static_cast<std::uint64_t>(v.w) << 32;
  *reinterpret_cast<unsigned __int128*>(to) = static_cast<unsigned __int128>(high) << 64 | low;
}

GRADLINK_DEVICE float floatOf(std::uint32_t bits) { return __uint_as_float(bits); }
GRADLINK_DEVICE double doubleOf(std::uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
GRADLINK_DEVICE void addTo(std::uint64_t* sum, std::uint64_t value) {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), value);
}
/// Hardware conversions: memory speed leaves no time for ten instructions. NaN loses its payload.
GRADLINK_DEVICE float fromFloat16(std::uint16_t half) { return __nv_half2float(half); }
GRADLINK_DEVICE std::uint16_t toFloat16(float x) { return __nv_float2half_rn(x); }
/// An uncached read, which sees the host's writes.
GRADLINK_DEVICE std::uint32_t readFlag(const std::uint32_t* flag) {
  return *static_cast<const volatile std::uint32_t*>(flag);
}
GRADLINK_DEVICE std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
GRADLINK_DEVICE void pauseBriefly() {}

#else

struct Index {
  unsigned x = 0;
};
inline thread_local Index threadIdx;
inline thread_local Index blockIdx;
inline thread_local Index gridDim;

struct alignas(16) Vector {
  std::uint32_t x, y, z, w;
};
inline void storeVector(Vector* to, Vector v) { *to = v; }

inline float floatOf(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline double doubleOf(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline void addTo(std::uint64_t* sum, std::uint64_t value) {
  std::atomic_ref(*sum).fetch_add(value, std::memory_order_relaxed);
}
inline float fromFloat16(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffu;
  const std::uint32_t sign = (half & 0x8000u) << 16;
  if (magnitude > 0x7c00u) return floatOf(0x7fffffffu);
  if (magnitude == 0x7c00u) return floatOf(sign | 0x7f800000u);
  if (magnitude < 0x400u) {
    const float unit = floatOf(0x33800000u);  // 2^-24
    return floatOf(sign | bitsOf(static_cast<float>(magnitude) * unit));
  }
  return floatOf(sign | ((magnitude << 13) + 0x38000000u));
}
inline std::uint16_t toFloat16(float x) {
  const std::uint32_t bits = bitsOf(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  // Subnormal halves: adding 0.5 lets the float adder shift and round.
  if (magnitude < 0x38800000u) {
    return static_cast<std::uint16_t>(sign | (bitsOf(floatOf(magnitude) + 0.5f) - 0x3f000000u));
  }
  // Rebase the exponent; adding just under half a unit, plus the odd bit, rounds to even.
  return static_cast<std::uint16_t>(
      sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
inline std::uint32_t readFlag(const std::uint32_t* flag) {
  return std::atomic_ref(*const_cast<std::uint32_t*>(flag)).load(std::memory_order_acquire);
}
inline std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}
/// Lets other threads use the core while a stream's thread is held.
inline void pauseBriefly() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

#endif

}  // namespace gradlink::kernels
