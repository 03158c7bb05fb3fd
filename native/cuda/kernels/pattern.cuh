// Test data generated and checked on the device, as defined in native/measure/pattern.h.
#pragma once

#include "core/kernels/pattern_formula.h"
#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

template <class P>
GRADLINK_DEVICE typename P::Memory valueAt(const Pattern<P>& pattern, const PatternCall& call,
                                           std::uint64_t i) {
  const std::uint64_t index = call.first + i;
  return P::encode(call.rank < 0 ? pattern.reduction(index, call.size)
                                 : pattern.input(index, static_cast<std::uint64_t>(call.rank)));
}

template <class P>
GRADLINK_DEVICE void fillTile(void* to, const PatternCall& call) {
  const Pattern<P> pattern(call.op, call.size, call.seed);
  const std::uint64_t begin = blockIdx.x * kPatternTile;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < begin + kPatternTile && i < call.count;
       i += kThreads) {
    static_cast<typename P::Memory*>(to)[i] = valueAt(pattern, call, i);
  }
}

template <class P>
GRADLINK_DEVICE void checkTile(const void* got, const PatternCall& call, std::uint64_t* wrong) {
  const Pattern<P> pattern(call.op, call.size, call.seed);
  const std::uint64_t begin = blockIdx.x * kPatternTile;
  std::uint64_t mine = 0;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < begin + kPatternTile && i < call.count;
       i += kThreads) {
    if (static_cast<const typename P::Memory*>(got)[i] != valueAt(pattern, call, i)) ++mine;
  }
  if (mine != 0) addTo(wrong, mine);
}

#define GRADLINK_PATTERN_OF(Type, ...)                                        \
  GRADLINK_KERNEL gradlinkFill##Type(void* to, PatternCall call) {            \
    fillTile<__VA_ARGS__>(to, call);                                          \
  }                                                                           \
  GRADLINK_KERNEL gradlinkCountWrong##Type(const void* got, PatternCall call, \
                                           std::uint64_t* wrong) {            \
    checkTile<__VA_ARGS__>(got, call, wrong);                                 \
  }
GRADLINK_PATTERN_OF(Int8, IntegerPattern<std::uint8_t, true>)
GRADLINK_PATTERN_OF(Uint8, IntegerPattern<std::uint8_t, false>)
GRADLINK_PATTERN_OF(Int32, IntegerPattern<std::uint32_t, true>)
GRADLINK_PATTERN_OF(Uint32, IntegerPattern<std::uint32_t, false>)
GRADLINK_PATTERN_OF(Int64, IntegerPattern<std::uint64_t, true>)
GRADLINK_PATTERN_OF(Uint64, IntegerPattern<std::uint64_t, false>)
GRADLINK_PATTERN_OF(Float16, PatternFloat16)
GRADLINK_PATTERN_OF(Bfloat16, PatternBfloat16)
GRADLINK_PATTERN_OF(Float32, PatternFloat32)
GRADLINK_PATTERN_OF(Float64, PatternFloat64)
GRADLINK_PATTERN_OF(Float8e4m3, PatternFloat8e4m3)
GRADLINK_PATTERN_OF(Float8e5m2, PatternFloat8e5m2)
#undef GRADLINK_PATTERN_OF

}  // namespace gradlink::kernels
