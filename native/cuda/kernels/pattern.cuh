// Test data made and checked on the device: element by element what native/measure/pattern.h says.
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

struct Fill {
  void* to;
  const PatternCall& call;
  template <class P>
  GRADLINK_DEVICE void operator()(P) const {
    fillTile<P>(to, call);
  }
};
struct Check {
  const void* got;
  const PatternCall& call;
  std::uint64_t* wrong;
  template <class P>
  GRADLINK_DEVICE void operator()(P) const {
    checkTile<P>(got, call, wrong);
  }
};

GRADLINK_KERNEL gradlinkFillPattern(void* to, PatternCall call) {
  withPattern(call.dtype, Fill{to, call});
}
GRADLINK_KERNEL gradlinkCountWrong(const void* got, PatternCall call, std::uint64_t* wrong) {
  withPattern(call.dtype, Check{got, call, wrong});
}

}  // namespace gradlink::kernels
