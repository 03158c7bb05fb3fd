// The one table of calls: what each is called, whether it has an op and a root, how many blocks go
// in and out. A Shape says which call it is, from JavaScript to the backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

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
  scan,
  exscan,
  barrier,
  // What follows brings more than a shape and buffers say: see Call.
  neighborAllReduce,
  split,
  allToAllV,
  allGatherV,
  gatherV,
  scatterV,
  reduceScatterV,
  neighborAllGather,
  pairGossip,
  send,
  receive,
  sendReceive,
};
/// How many kinds are collectives of a shape and buffers alone, the first ones. JavaScript knows
/// all kinds by their numbers.
inline constexpr int kCollectiveCount = 11;
inline constexpr int kKindCount = 23;

/// Blocks of `count` elements that a rank brings or gets.
enum class Blocks : std::uint8_t {
  none,
  one,
  each,  // one for each rank
  oneAtRoot,
  eachAtRoot,
};

/// "one", "eachAtRoot": the names of lib/collectives.ts.
const char* nameOf(Blocks blocks);

struct CollectiveTraits {
  Kind kind;
  const char* name;
  bool hasOp;
  bool hasRoot;
  Blocks in;
  Blocks out;
};

// clang-format off
inline constexpr CollectiveTraits kCollectives[kKindCount] = {
    // kind                    name                 op     root   in                  out
    {Kind::allReduce,         "allReduce",         true,  false, Blocks::one,        Blocks::one},
    {Kind::reduce,            "reduce",            true,  true,  Blocks::one,        Blocks::oneAtRoot},
    {Kind::broadcast,         "broadcast",         false, true,  Blocks::oneAtRoot,  Blocks::one},
    {Kind::allGather,         "allGather",         false, false, Blocks::one,        Blocks::each},
    {Kind::reduceScatter,     "reduceScatter",     true,  false, Blocks::each,       Blocks::one},
    {Kind::allToAll,          "allToAll",          false, false, Blocks::each,       Blocks::each},
    {Kind::gather,            "gather",            false, true,  Blocks::one,        Blocks::eachAtRoot},
    {Kind::scatter,           "scatter",           false, true,  Blocks::eachAtRoot, Blocks::one},
    {Kind::scan,              "scan",              true,  false, Blocks::one,        Blocks::one},
    {Kind::exscan,            "exscan",            true,  false, Blocks::one,        Blocks::one},
    {Kind::barrier,           "barrier",           false, false, Blocks::none,       Blocks::none},
    {Kind::neighborAllReduce, "neighborAllReduce", false, false, Blocks::one,        Blocks::one},
    {Kind::split,             "split",             false, false, Blocks::one,        Blocks::each},
    {Kind::allToAllV,         "allToAllV",         false, false, Blocks::none,       Blocks::none},
    {Kind::allGatherV,        "allGatherV",        false, false, Blocks::none,       Blocks::none},
    {Kind::gatherV,           "gatherV",           false, true,  Blocks::none,       Blocks::none},
    {Kind::scatterV,          "scatterV",          false, true,  Blocks::none,       Blocks::none},
    {Kind::reduceScatterV,    "reduceScatterV",    true,  false, Blocks::none,       Blocks::none},
    {Kind::neighborAllGather, "neighborAllGather", false, false, Blocks::none,       Blocks::none},
    {Kind::pairGossip,        "pairGossip",        false, false, Blocks::none,       Blocks::none},
    {Kind::send,              "send",              false, false, Blocks::none,       Blocks::none},
    {Kind::receive,           "receive",           false, false, Blocks::none,       Blocks::none},
    {Kind::sendReceive,       "sendReceive",       false, false, Blocks::none,       Blocks::none},
};
// clang-format on

constexpr const CollectiveTraits& traitsOf(Kind kind) {
  return kCollectives[static_cast<std::size_t>(kind)];
}
constexpr bool hasOp(Kind kind) { return traitsOf(kind).hasOp; }
constexpr bool hasRoot(Kind kind) { return traitsOf(kind).hasRoot; }

/// A shape and buffers say all of it.
constexpr bool isPlain(Kind kind) { return static_cast<int>(kind) < kCollectiveCount; }
/// What ranks bring and get differs in length: see core/counted.h.
constexpr bool isCounted(Kind kind) {
  return kind >= Kind::allToAllV && kind <= Kind::reduceScatterV;
}
/// From one rank to another; other ranks have no part in it.
constexpr bool isMessage(Kind kind) { return kind >= Kind::send && kind <= Kind::sendReceive; }

/// Rank r's result is the reduction of ranks 0 to r, itself included or, with exscan, not: then
/// rank 0 gets the op's identity (kernels/identity.h).
constexpr bool isScan(Kind kind) { return kind == Kind::scan || kind == Kind::exscan; }
/// How many ranks, from rank 0 on, a rank's result of a scan is the reduction of.
constexpr std::size_t scannedRanks(Kind kind, int rank) {
  return static_cast<std::size_t>(rank) + (kind == Kind::scan ? 1 : 0);
}

/// Also of what a peer sent, which may be no kind.
const char* nameOf(Kind kind);

/// What one collective call is, and all ranks must agree on. Fields that mean nothing for the kind
/// are left at their defaults, so that shapes compare equal field by field.
struct Shape {
  Kind kind = Kind::barrier;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  std::uint64_t count = 0;

  bool operator==(const Shape&) const = default;
};

/// What ranks that ask for these announce: they have no kind of their own.
inline constexpr Shape kNodesCall{.kind = Kind::split, .count = 1};
inline constexpr Shape kOpenWireCall{.kind = Kind::split, .count = 2};
/// And ranks that tell one another what they named calls that differ.
inline constexpr Shape kNamesCall{.kind = Kind::split, .count = 3};

/// "allReduce(count 12, float32, sum)": for messages.
std::string describe(const Shape& shape);

/// A shape as ranks announce it to one another: without padding, so that it may be compared and
/// hashed as bytes.
struct ShapeOnWire {
  ShapeOnWire() = default;
  explicit ShapeOnWire(const Shape& shape)
      : count(shape.count),
        root(shape.root),
        kind(static_cast<std::uint8_t>(shape.kind)),
        dtype(static_cast<std::uint8_t>(shape.dtype)),
        op(static_cast<std::uint16_t>(shape.op)) {}
  Shape shape() const {
    return {static_cast<Kind>(kind), static_cast<DType>(dtype), static_cast<ReduceOp>(op), root,
            count};
  }
  bool operator==(const ShapeOnWire&) const = default;
  /// What peers say is looked at before it is used.
  bool isKnown() const { return kind < kKindCount && dtype < kDTypeCount && op < kReduceOpCount; }

  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t kind = 0;
  std::uint8_t dtype = 0;
  std::uint16_t op = 0;
};
static_assert(std::has_unique_object_representations_v<ShapeOnWire>);

inline std::string describe(const ShapeOnWire& announced) {
  return announced.isKnown() ? describe(announced.shape()) : "an unknown operation";
}

/// How many blocks that is for one of `size` ranks.
constexpr std::size_t blocksOf(Blocks blocks, int size, bool isRoot) {
  switch (blocks) {
    case Blocks::none:
      return 0;
    case Blocks::one:
      return 1;
    case Blocks::each:
      return static_cast<std::size_t>(size);
    case Blocks::oneAtRoot:
      return isRoot ? 1 : 0;
    case Blocks::eachAtRoot:
      return isRoot ? static_cast<std::size_t>(size) : 0;
  }
  return 0;
}

/// Blocks of `count` elements that a rank reads from its input and writes to its output; 0 where
/// the call does not need that pointer.
constexpr std::size_t inBlocks(const Shape& shape, int size, int rank) {
  return blocksOf(traitsOf(shape.kind).in, size, rank == shape.root);
}
constexpr std::size_t outBlocks(const Shape& shape, int size, int rank) {
  return blocksOf(traitsOf(shape.kind).out, size, rank == shape.root);
}

/// The most bytes that any rank brings to a call: the same on all ranks, as the choice of algorithm
/// must be.
constexpr std::size_t largestInput(const Shape& shape, int size) {
  return blocksOf(traitsOf(shape.kind).in, size, true) * shape.count * sizeOf(shape.dtype);
}

}  // namespace gradlink
