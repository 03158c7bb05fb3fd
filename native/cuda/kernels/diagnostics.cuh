// Kernels of diagnostics: a copy, a pointer chase, and a hold on a stream.
#pragma once

#include "cuda/kernels/language.h"
#include "cuda/kernels/tasks.h"

namespace gradlink::kernels {

/// 64 bytes a thread in flight: all loads of a round precede its stores.
GRADLINK_KERNEL gradlinkCopy(void* to, const void* from, std::uint64_t vectors) {
  constexpr unsigned kUnroll = 4;
  constexpr std::uint64_t kTile = kUnroll * kThreads;
  const Vector* source = static_cast<const Vector*>(from);
  Vector* target = static_cast<Vector*>(to);
  for (std::uint64_t tile = blockIdx.x * kTile; tile < vectors;
       tile += static_cast<std::uint64_t>(gridDim.x) * kTile) {
    const std::uint64_t at = tile + threadIdx.x;
    if (vectors - tile >= kTile) {
      Vector loaded[kUnroll];
      GRADLINK_UNROLL
      for (unsigned v = 0; v < kUnroll; ++v) loaded[v] = source[at + v * kThreads];
      GRADLINK_UNROLL
      for (unsigned v = 0; v < kUnroll; ++v) target[at + v * kThreads] = loaded[v];
    } else {
      for (std::uint64_t i = at; i < vectors; i += kThreads) target[i] = source[i];
    }
  }
}

/// One block of one thread for each multiprocessor; all but one end at once, so its loads are
/// alone. Each load's address is the previous value, so loads do not overlap.
GRADLINK_KERNEL gradlinkChase(const void* list, std::uint32_t steps, std::uint32_t block,
                              std::uint64_t* result) {
  if (blockIdx.x != block) return;
  const void* at = list;
  const std::uint64_t start = nanoseconds();
  for (std::uint32_t i = 0; i < steps; ++i) at = *static_cast<const void* const volatile*>(at);
  // Depends on the last load, so the clock cannot be read too early.
  result[1] = reinterpret_cast<std::uint64_t>(at);
  result[0] = nanoseconds() - start;
}

/// One thread.
GRADLINK_KERNEL gradlinkSpin(const std::uint32_t* flag, std::uint64_t limitNanoseconds) {
  const std::uint64_t start = nanoseconds();
  while (readFlag(flag) == 0 && nanoseconds() - start < limitNanoseconds) pauseBriefly();
}

}  // namespace gradlink::kernels
