// The kernels of one instruction set: a function for each (dtype, op), looked up once a call.
// Private to core and its tests; others use core/reduce_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_kernels.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::simd {

/// Streaming stores need this alignment at every level: one cache line.
inline constexpr std::size_t kLineBytes = 64;

/// Elements begin..end of m destinations and k >= 1 sources. The last `streamed` destinations are
/// no sources, are aligned to kLineBytes at `begin` and bypass the caches. divisor: for avg.
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

/// As ReduceArguments, with one destination and one weight for each source.
struct WeightedArguments {
  void* dst;
  const void* const* src;
  const double* weights;
  std::size_t k;
  std::size_t count;
};
using Weighted = void (*)(const WeightedArguments&);

/// One term of a weighted sum, with a saved copy if an earlier store may have changed the source.
struct MixTerm {
  const void* src;
  const void* held;  // or null
  double weight;
};
/// What to save, kMixBytes at a time, before a block's first store.
struct MixHold {
  const void* src;
  void* held;
};
/// Elements begin..end of m weighted sums: their terms are consecutive. `streamed`: no destination
/// is a source, all are aligned to kLineBytes at `begin` and bypass the caches.
struct MixArguments {
  const WeightedOutput* outputs;
  std::size_t m;
  bool streamed;
  const MixTerm* terms;
  const MixHold* holds;
  std::size_t h;
  std::size_t begin;
  std::size_t end;
};
using Mix = void (*)(const MixArguments&);
/// The vectors in flight at a time, in register form.
inline constexpr std::size_t kMixBytes = 256;

/// Bytes begin..end of one source to m destinations; `streamed` as in ReduceArguments.
struct CopyArguments {
  void* const* dst;
  std::size_t m;
  std::size_t streamed;
  const void* src;
  std::size_t begin;
  std::size_t end;
};
using Copy = void (*)(const CopyArguments&);

/// Halves to float32, and back after a division. The output may begin where the input does.
using Widen = void (*)(const std::uint16_t* from, float* to, std::size_t count);
using Narrow = void (*)(const float* from, std::uint16_t* to, std::size_t count,
                        std::size_t divisor);

struct KernelTable {
  const char* name;
  Reduce reduce[kDTypeCount][kReduceOpCount];  // null for float8
  Weighted weighted[kDTypeCount];              // null for integers
  Mix mix[kDTypeCount];                        // likewise
  Copy copy;
  Widen widenHalf;
  Widen widenBrain;
  Narrow narrowHalf;
  Narrow narrowBrain;
};

/// The levels that this build and this machine have, the narrowest first.
int availableLevels(const KernelTable* (&levels)[3]);

/// The widest level that GRADLINK_SIMD allows.
const KernelTable& currentLevel();

/// The named level or the next narrower available one; the widest if the name is unknown or null.
const KernelTable& levelFor(const char* name);

// The calls of core/reduce_kernels.h at a chosen level.
/// `divisor`: of avg; 0: the number of sources.
void reduceMany(const KernelTable&, std::span<void* const> dst, std::span<const void* const> src,
                std::size_t count, DType, ReduceOp, Streaming, std::size_t divisor = 0);
void widen(const KernelTable&, const void* halves, float* to, std::size_t count, DType);
void narrow(const KernelTable&, const float* from, void* halves, std::size_t count, DType,
            std::size_t divisor);
void weightedSum(const KernelTable&, void* dst, std::span<const void* const> src,
                 std::span<const double> weights, std::size_t count, DType,
                 std::size_t divisor = 1);
void weightedSums(const KernelTable&, std::span<const WeightedOutput> outputs,
                  std::span<const WeightedTerm> terms, std::size_t count, DType, bool streaming);
void copyMany(const KernelTable&, std::span<void* const> dst, const void* src, std::size_t bytes,
              Streaming);

// One a translation unit, compiled with its instruction set. Null if the build has no such target.
const KernelTable* scalarKernels();
const KernelTable* avx2Kernels();
const KernelTable* avx512Kernels();
const KernelTable* neonKernels();

}  // namespace gradlink::simd
