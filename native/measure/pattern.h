// Test data whose reductions are exact in any order, so a result is right or wrong to the bit. It
// differs by rank and index, so misplaced blocks are detected.
//
// Sums of integers wrap, so any value will do. Floats are whole numbers so small that no partial
// sum rounds (up to 2^24 over all ranks for float32, 2^11 for float16, 2^8 for bfloat16, 2^4 and
// 2^3 for float8). For avg they are multiples of the number of ranks; for prod powers of two, one
// of them times a small odd number. If a type has too few digits, ranks take turns and the others
// give the neutral 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink::measure {

struct Pattern {
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  int size = 1;
  std::uint64_t seed = 0;
};

/// Writes elements first .. first + count - 1 of `rank`'s input. Uses the thread pool.
void fillPattern(void* to, std::size_t first, std::size_t count, const Pattern&, int rank);

/// Elements that differ from fillPattern's for (first, rank).
std::size_t countWrongInput(const void* got, std::size_t first, std::size_t count, const Pattern&,
                            int rank);

/// Elements that differ from the reduction of the first `ranks` ranks' elements; with no rank, from
/// the op's identity. avg is exact over all ranks only.
std::size_t countWrongReduction(const void* got, std::size_t first, std::size_t count,
                                const Pattern&, int ranks);

/// The expected bits of element `index`, in the low bytes.
std::uint64_t inputBits(std::size_t index, const Pattern&, int rank);
std::uint64_t reductionBits(std::size_t index, const Pattern&, int ranks);

/// A wrong element; bits are in the low bytes.
struct WrongElement {
  /// The rank of the output; for copies, the index of the copy.
  int rank = 0;
  std::uint64_t index = 0;
  std::uint64_t got = 0;
  std::uint64_t expected = 0;
};

}  // namespace gradlink::measure
