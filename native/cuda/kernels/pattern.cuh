// Test data generated and checked on the device, as defined in native/measure/pattern.h. One kernel
// for all of it: drivers compile what is loaded, and nothing that is timed waits for its work.
#pragma once

#include "core/kernels/pattern_formula.h"
#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

template <class Word>
GRADLINK_DEVICE bool putWord(void* to, std::uint64_t i, std::uint64_t bits, bool checks) {
  Word& word = static_cast<Word*>(to)[i];
  if (checks) return word == static_cast<Word>(bits);
  word = static_cast<Word>(bits);
  return true;
}

/// Stores an element, or says whether it is there.
GRADLINK_DEVICE bool putBits(void* to, std::uint64_t i, std::uint64_t bits, std::uint32_t bytes,
                             bool checks) {
  if (bytes == 1) return putWord<std::uint8_t>(to, i, bits, checks);
  if (bytes == 2) return putWord<std::uint16_t>(to, i, bits, checks);
  if (bytes == 4) return putWord<std::uint32_t>(to, i, bits, checks);
  return putWord<std::uint64_t>(to, i, bits, checks);
}

template <class Exact>
GRADLINK_DEVICE void patternTile(void* data, const PatternCall& call, std::uint64_t* wrong) {
  const Pattern<Exact> pattern(call.type, call.op, call.size, call.seed);
  const std::uint64_t begin = blockIdx.x * kPatternTile;
  const std::uint64_t end = call.count - begin < kPatternTile ? call.count : begin + kPatternTile;
  std::uint64_t mine = 0;
  GRADLINK_KEEP_ROLLED
  for (std::uint64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const std::uint64_t index = call.first + i;
    const Exact value = call.rank < 0 ? pattern.reduction(index, call.size)
                                      : pattern.input(index, static_cast<std::uint64_t>(call.rank));
    if (!putBits(data, i, pattern.encode(value), call.type.bytes, wrong != nullptr)) ++mine;
  }
  if (mine != 0) addTo(wrong, mine);
}

/// Fills the array; with a counter it reads it instead, and adds the elements that are wrong.
GRADLINK_KERNEL gradlinkPattern(void* data, PatternCall call, std::uint64_t* wrong) {
  if (call.type.isFloat) {
    patternTile<double>(data, call, wrong);
  } else {
    patternTile<std::uint64_t>(data, call, wrong);
  }
}

}  // namespace gradlink::kernels
