// What one instruction set offers: a function for each (dtype, op), looked up once a call. Private
// to core and its tests; everybody else calls core/reduce_kernels.h.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"
#include "core/reduce_kernels.h"
#include "core/reduce_op.h"

namespace gradlink::simd {

/// Alignment that lets a destination bypass the caches at every level: one cache line.
inline constexpr std::size_t kLineBytes = 64;

/// Elements begin..end of m destinations and k >= 1 sources. The last `streamed` destinations are
/// not sources, are aligned to kLineBytes at element `begin`, and are written past the caches. An
/// avg divides by `divisor`.
struct ReduceArguments {
  void* const* dst;
  std::size_t m;
  std::size_t streamed;
  const void* const* src;
  std::size_t k;
  std::size_t begin;
  std::size_t end;
  std::size_t divisor;
};
using Reduce = void (*)(const ReduceArguments&);

/// As Reduce, with one destination, any k >= 1 and one weight for each source.
struct WeightedArguments {
  void* dst;
  const void* const* src;
  const double* weights;
  std::size_t k;
  std::size_t count;
};
using Weighted = void (*)(const WeightedArguments&);

/// Bytes begin..end of one source to m destinations; alignment and `streamed` as in
/// ReduceArguments.
struct CopyArguments {
  void* const* dst;
  std::size_t m;
  std::size_t streamed;
  const void* src;
  std::size_t begin;
  std::size_t end;
};
using Copy = void (*)(const CopyArguments&);

struct KernelTable {
  const char* name;
  Reduce reduce[kDTypeCount][kReduceOpCount];
  Weighted weighted[kDTypeCount];  // null for integers
  Copy copy;
};

/// The levels this build and this machine have, the narrowest first; returns how many.
int availableLevels(const KernelTable* (&levels)[3]);

/// The level in use: the widest, or the widest that GRADLINK_SIMD allows.
const KernelTable& currentLevel();

/// GRADLINK_SIMD's meaning: the named level, or the next narrower one that is available; the widest
/// where the name is unknown or null.
const KernelTable& levelFor(const char* name);

// The calls of core/reduce_kernels.h at a chosen level.
void reduceMany(const KernelTable&, std::span<void* const> dst, std::span<const void* const> src,
                std::size_t count, DType, ReduceOp, Streaming);
void divideBy(const KernelTable&, void* data, std::size_t count, DType, std::size_t divisor);
void weightedSum(const KernelTable&, void* dst, std::span<const void* const> src,
                 std::span<const double> weights, std::size_t count, DType);
void copyMany(const KernelTable&, std::span<void* const> dst, const void* src, std::size_t bytes,
              Streaming);

// One a translation unit, each compiled with its own instruction set. Null where the build has no
// such target.
const KernelTable* scalarKernels();
const KernelTable* avx2Kernels();
const KernelTable* avx512Kernels();
const KernelTable* neonKernels();

}  // namespace gradlink::simd
