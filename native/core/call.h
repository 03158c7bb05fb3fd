// What one collective call is: the shape that all ranks must agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/communicator.h"
#include "core/kernels/dtype.h"
#include "core/kernels/reduce_op.h"

namespace gradlink {

enum class Kind : std::uint8_t {
  allReduce,
  reduce,
  broadcast,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  barrier,
  neighborAllReduce,
  split,
};

const char* nameOf(Kind kind);

/// Which of the fields mean something for a kind; the others are left at their defaults, so that
/// shapes compare equal field by field.
inline bool hasOp(Kind kind) {
  return kind == Kind::allReduce || kind == Kind::reduce || kind == Kind::reduceScatter;
}
inline bool hasRoot(Kind kind) {
  return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather ||
         kind == Kind::scatter;
}

struct Shape {
  Kind kind = Kind::barrier;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  std::uint64_t count = 0;

  bool operator==(const Shape&) const = default;
};

/// "allReduce(count 12, float32, sum)": for messages.
std::string describe(const Shape& shape);

/// Blocks of `count` elements that a rank reads from its input and writes to its output; 0 where
/// the call does not need that pointer.
inline std::size_t inBlocks(const Shape& shape, int size, int rank) {
  const auto blocks = static_cast<std::size_t>(size);
  switch (shape.kind) {
    case Kind::allReduce:
    case Kind::reduce:
    case Kind::allGather:
    case Kind::gather:
    case Kind::neighborAllReduce:
    case Kind::split:
      return 1;
    case Kind::broadcast:
      return rank == shape.root ? 1 : 0;
    case Kind::reduceScatter:
    case Kind::allToAll:
      return blocks;
    case Kind::scatter:
      return rank == shape.root ? blocks : 0;
    case Kind::barrier:
      return 0;
  }
  return 0;
}

inline std::size_t outBlocks(const Shape& shape, int size, int rank) {
  const auto blocks = static_cast<std::size_t>(size);
  switch (shape.kind) {
    case Kind::allReduce:
    case Kind::broadcast:
    case Kind::reduceScatter:
    case Kind::scatter:
    case Kind::neighborAllReduce:
      return 1;
    case Kind::reduce:
      return rank == shape.root ? 1 : 0;
    case Kind::allGather:
    case Kind::allToAll:
    case Kind::split:
      return blocks;
    case Kind::gather:
      return rank == shape.root ? blocks : 0;
    case Kind::barrier:
      return 0;
  }
  return 0;
}

/// A neighborhood whose weights are resolved: out = sum of weight * input of rank, in this order.
using WeightRow = std::vector<std::pair<int, double>>;

/// Throws invalidArgument where a neighborhood names a rank that is none, its own, or one twice.
void checkNeighborhood(const Neighborhood& own, int rank, int size);

/// One row for each rank from everybody's neighborhoods; throws mismatch where a rank names a
/// source that does not name it as a destination, or the other way round. Where no rank wants that
/// checked, a source that does not name a rank counts as if it did with a weight of 1.
std::vector<WeightRow> resolveNeighbors(std::span<const Neighborhood> all);

/// Throws invalidArgument for a root or a dtype that the call cannot have, and for null pointers it
/// needs. `gpu`: the ranks are GPUs, which have the float8 types too.
void checkShape(const Shape& shape, int size, bool gpu = false);
void checkPointers(const Shape& shape, int size, int rank, const void* in, const void* out);

}  // namespace gradlink
